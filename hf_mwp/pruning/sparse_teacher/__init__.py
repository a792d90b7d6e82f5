"""STARK: sparse teachers without the heads and neurons that make a teacher hard to learn from, and their scores."""
