"""Trainers and their configs."""

from .distillation.distillation_config import DistillationConfig
from .distillation.distillation_trainer import DistillationTrainer
from .distillation.mixing_callback import ParameterMixingCallback
from .distillation.seq2seq_distillation_config import Seq2SeqDistillationConfig
from .distillation.seq2seq_distillation_trainer import Seq2SeqDistillationTrainer
from .pretraining.pretraining_config import PreTrainingConfig
from .pretraining.pretraining_trainer import PreTrainingTrainer
from .recursive.recursive_distillation import Generation, recursive_distillation
from .recursive.recursive_distillation_config import RecursiveDistillationConfig
from .seq2seq.seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig
from .seq2seq.seq2seq_fine_tuning_trainer import Seq2SeqFineTuningTrainer
from .solver.solver_config import SolverTrainingConfig
from .solver.solver_trainer import SolverTrainer
from .stark.stark_config import StarkConfig
from .stark.stark_trainer import StarkStudent, StarkTrainer


__all__ = [
    "DistillationConfig",
    "DistillationTrainer",
    "Generation",
    "ParameterMixingCallback",
    "PreTrainingConfig",
    "PreTrainingTrainer",
    "RecursiveDistillationConfig",
    "Seq2SeqDistillationConfig",
    "Seq2SeqDistillationTrainer",
    "Seq2SeqFineTuningConfig",
    "Seq2SeqFineTuningTrainer",
    "SolverTrainingConfig",
    "SolverTrainer",
    "StarkConfig",
    "StarkStudent",
    "StarkTrainer",
    "recursive_distillation",
]
