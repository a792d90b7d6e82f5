"""Pairs of a config and a trainer."""

from .distillation_config import DistillationConfig
from .distillation_trainer import DistillationTrainer
from .mixing_callback import ParameterMixingCallback
from .solver_config import SolverConfig
from .solver_trainer import SolverTrainer


__all__ = ["DistillationConfig", "DistillationTrainer", "ParameterMixingCallback", "SolverConfig", "SolverTrainer"]
