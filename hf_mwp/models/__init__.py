"""Models; importing this package registers them with the Auto classes."""

from transformers import CONFIG_MAPPING, AutoConfig

from .architecture import ARCHITECTURES
from .athena import AthenaConfig, AthenaModel
from .cut_model import cut_class
from .decoder import Decoder
from .gts import GTSConfig, GTSDecoder
from .mwp_solver import MwpSolver, MwpSolverConfig
from .mwp_student import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from .mwp_student.conversion_mwp_student import SOURCES
from .solver import SolveOutput, Solver


# Encoders that cannot be converted to students. Older versions of Transformers lack some of them.
for _type in ARCHITECTURES:
    if _type not in SOURCES and _type in CONFIG_MAPPING:
        _config_class = cut_class(CONFIG_MAPPING[_type])
        AutoConfig.register(_config_class.model_type, _config_class)

__all__ = [
    "AthenaConfig",
    "AthenaModel",
    "Decoder",
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
