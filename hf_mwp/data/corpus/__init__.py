"""Corpora of problem texts for pretraining: reading, tagging and encoding."""
