"""Loader of text pairs for sequence-to-sequence models."""
