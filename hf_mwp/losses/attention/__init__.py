"""Losses between attention scores, and between relations of queries, keys or values."""
