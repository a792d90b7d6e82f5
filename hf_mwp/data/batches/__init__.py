"""Batches of problems: processor, output vocabulary, collators, trees."""
