"""Arguments of distillation trainers whose student is a solver."""

from dataclasses import dataclass

from hf_mwp.compress.trainers.distillation_config import DistillationConfig
from hf_mwp.compress.trainers.recursive_distillation_config import RecursiveDistillationConfig
from hf_mwp.compress.trainers.stark_config import StarkConfig

from .solver_config import SolverTrainingConfig


@dataclass
class SolverDistillationConfig(DistillationConfig, SolverTrainingConfig):
    r"""
    Arguments of [`DistillationTrainer`] for a student that is a solver: the arguments of [`DistillationConfig`], and
    the decoder's learning rate and decoding of [`SolverTrainingConfig`].
    """


@dataclass
class SolverRecursiveDistillationConfig(RecursiveDistillationConfig, SolverTrainingConfig):
    r"""
    Arguments of [`recursive_distillation`] for a solver: the arguments of [`RecursiveDistillationConfig`], and the
    decoder's learning rate and decoding of [`SolverTrainingConfig`].
    """


@dataclass
class SolverStarkConfig(StarkConfig, SolverTrainingConfig):
    r"""
    Arguments of [`StarkTrainer`] for a student that is a solver: the arguments of [`StarkConfig`], and the decoder's
    learning rate and decoding of [`SolverTrainingConfig`].
    """
