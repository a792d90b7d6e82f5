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
from .solver import SolveOutput, Solver


# Encoders without some of their heads. Students count their heads themselves. Older versions of Transformers lack some
# of these types.
for _type in ARCHITECTURES:
    if _type != MwpStudentConfig.model_type and _type in CONFIG_MAPPING:
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
