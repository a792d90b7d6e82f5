"""Pairs of a config and a trainer."""

from .distillation.distillation_config import DistillationConfig
from .distillation.distillation_trainer import DistillationTrainer
from .distillation.mixing_callback import ParameterMixingCallback
from .pretraining.pretraining_config import PreTrainingConfig
from .pretraining.pretraining_trainer import PreTrainingTrainer
from .recursive.recursive_distillation import Generation, recursive_distillation
from .recursive.recursive_distillation_config import RecursiveDistillationConfig
from .solver.solver_config import SolverTrainingConfig
from .solver.solver_trainer import SolverTrainer
from .stark.stark_config import StarkConfig
from .stark.stark_student import StarkStudent
from .stark.stark_trainer import StarkTrainer


__all__ = [
    "DistillationConfig",
    "DistillationTrainer",
    "Generation",
    "ParameterMixingCallback",
    "PreTrainingConfig",
    "PreTrainingTrainer",
    "RecursiveDistillationConfig",
    "SolverTrainingConfig",
    "SolverTrainer",
    "StarkConfig",
    "StarkStudent",
    "StarkTrainer",
    "recursive_distillation",
]
