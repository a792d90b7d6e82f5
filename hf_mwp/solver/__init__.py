"""Solvers of math word problems in PyTorch: data, models, training, metrics and solving."""
