"""Solvers that need only NumPy and tokenizers, not PyTorch or Transformers."""

from .batch_solver import BatchSolver
from .solver import RuntimeSolver, load_solver


__all__ = ["BatchSolver", "RuntimeSolver", "load_solver"]
