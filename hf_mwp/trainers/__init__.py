"""Trainers and their configs. Modules are imported on first use."""

from ..lazy_names import lazy_names


_MODULES = {
    "DistillationConfig": "distillation.distillation_config",
    "DistillationTrainer": "distillation.distillation_trainer",
    "Generation": "recursive.recursive_distillation",
    "ParameterMixingCallback": "distillation.mixing_callback",
    "PreTrainingConfig": "pretraining.pretraining_config",
    "PreTrainingTrainer": "pretraining.pretraining_trainer",
    "RecursiveDistillationConfig": "recursive.recursive_distillation_config",
    "Seq2SeqDistillationConfig": "distillation.seq2seq_distillation_config",
    "Seq2SeqDistillationTrainer": "distillation.seq2seq_distillation_trainer",
    "Seq2SeqFineTuningConfig": "seq2seq.seq2seq_fine_tuning_config",
    "Seq2SeqFineTuningTrainer": "seq2seq.seq2seq_fine_tuning_trainer",
    "SolverTrainer": "solver.solver_trainer",
    "SolverTrainingConfig": "solver.solver_config",
    "StarkConfig": "stark.stark_config",
    "StarkStudent": "stark.stark_trainer",
    "StarkTrainer": "stark.stark_trainer",
    "recursive_distillation": "recursive.recursive_distillation",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
