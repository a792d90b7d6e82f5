"""Functions that build and load models and processors from their options."""

from .solver import build_solver, load_solver
from .student import make_student
from .student_shape import StudentShape, choose_student_shape


__all__ = ["StudentShape", "build_solver", "choose_student_shape", "load_solver", "make_student"]
