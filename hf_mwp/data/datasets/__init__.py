"""Data sets, one loader each, and what loads them by name."""
