"""Rules that reword problems as reverse-operation problems, one module per language."""
