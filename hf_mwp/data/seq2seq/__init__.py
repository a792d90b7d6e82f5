"""Pairs of texts for sequence-to-sequence models."""
