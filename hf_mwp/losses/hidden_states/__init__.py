"""Losses between hidden states, of equal or of different width."""
