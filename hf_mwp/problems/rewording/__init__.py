"""Texts of problems turned around, one module per language."""
