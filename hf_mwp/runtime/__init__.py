"""Solving with NumPy and tokenizers alone: neither PyTorch nor Transformers is imported."""

from .solver import RuntimeSolver, load_solver


__all__ = ["RuntimeSolver", "load_solver"]
