"""Solvers and decoders; importing this package registers them, and the encoders, with the Auto classes."""

import hf_mwp.compress.models  # noqa: F401 (registers the encoders)

from .athena import AthenaConfig, AthenaModel
from .decoder import Decoder
from .gts import GTSConfig, GTSDecoder
from .mwp_solver import MwpSolver, MwpSolverConfig
from .solve_output import SolveOutput
from .solver import Solver


__all__ = [
    "AthenaConfig",
    "AthenaModel",
    "Decoder",
    "GTSConfig",
    "GTSDecoder",
    "MwpSolver",
    "MwpSolverConfig",
    "SolveOutput",
    "Solver",
]
