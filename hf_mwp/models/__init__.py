"""Models; importing this package registers them with the Auto classes."""

from .gts import GTSConfig, GTSDecoder
from .mwp_solver import MwpSolver, MwpSolverConfig
from .mwp_student import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from .solve_output import SolveOutput
from .solver import Solver


__all__ = [
    "GTSConfig",
    "GTSDecoder",
    "MwpSolver",
    "MwpSolverConfig",
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForPreTraining",
    "MwpStudentForSequenceClassification",
    "MwpStudentModel",
    "SolveOutput",
    "Solver",
]
