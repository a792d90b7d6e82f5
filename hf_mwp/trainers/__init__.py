"""Pairs of a config and a trainer."""

from .distillation_config import DistillationConfig
from .distillation_trainer import DistillationTrainer
from .mixing_callback import ParameterMixingCallback
from .pretraining_config import PreTrainingConfig
from .pretraining_trainer import PreTrainingTrainer
from .solver_config import SolverConfig
from .solver_trainer import SolverTrainer


__all__ = [
    "DistillationConfig",
    "DistillationTrainer",
    "ParameterMixingCallback",
    "PreTrainingConfig",
    "PreTrainingTrainer",
    "SolverConfig",
    "SolverTrainer",
]
