"""Readers of data files, the schema of their rows, and the selection of usable rows."""
