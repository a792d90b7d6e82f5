"""Data sets: one loader each, and loading by name."""
