"""Rewording of problems as reverse-operation problems, one module per language."""
