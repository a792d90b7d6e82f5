"""Compression of any Transformers model: losses, students, teachers, pruning and trainers."""
