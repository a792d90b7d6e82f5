"""Solving with NumPy and tokenizers alone: neither PyTorch nor Transformers is imported."""

from .batch_solver import BatchSolver
from .solver import RuntimeSolver, load_solver


__all__ = ["BatchSolver", "RuntimeSolver", "load_solver"]
