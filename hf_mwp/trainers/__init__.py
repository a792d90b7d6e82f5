"""Pairs of a config and a trainer."""

from .distillation.distillation_config import DistillationConfig
from .distillation.distillation_trainer import DistillationTrainer
from .distillation.mixing_callback import ParameterMixingCallback
from .pretraining.pretraining_config import PreTrainingConfig
from .pretraining.pretraining_trainer import PreTrainingTrainer
from .solver.solver_config import SolverConfig
from .solver.solver_trainer import SolverTrainer


__all__ = [
    "DistillationConfig",
    "DistillationTrainer",
    "ParameterMixingCallback",
    "PreTrainingConfig",
    "PreTrainingTrainer",
    "SolverConfig",
    "SolverTrainer",
]
