"""From names, sizes and layers to models and processors."""

from .solver import build_solver, load_solver
from .student import make_student


__all__ = ["build_solver", "load_solver", "make_student"]
