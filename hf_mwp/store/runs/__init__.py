"""Folder of a run: options, environment, metrics and log, and which process writes them."""
