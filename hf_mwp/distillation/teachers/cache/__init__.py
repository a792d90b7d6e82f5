"""Outputs of a frozen teacher on disk."""
