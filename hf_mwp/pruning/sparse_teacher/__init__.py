"""STARK: scores of heads and neurons that make a teacher hard to learn from, and teachers without them."""
