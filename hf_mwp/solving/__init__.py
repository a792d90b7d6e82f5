"""Solving of data sets: batches, search, re-ranking, reasons of failure, and pseudo-labels."""
