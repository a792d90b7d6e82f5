"""Loaders of the datasets, and functions that load a dataset by name."""
