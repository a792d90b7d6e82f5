"""Losses between predicted distributions."""
