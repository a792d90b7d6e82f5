"""Trainers and their configs. Modules are imported on first use."""

from ..lazy_names import lazy_names


_NAMES = {
    "distillation.distillation_config": ("DistillationConfig",),
    "distillation.distillation_trainer": ("DistillationTrainer",),
    "distillation.mixing_callback": ("ParameterMixingCallback",),
    "distillation.seq2seq_distillation_config": ("Seq2SeqDistillationConfig",),
    "distillation.seq2seq_distillation_trainer": ("Seq2SeqDistillationTrainer",),
    "pretraining.pretraining_config": ("PreTrainingConfig",),
    "pretraining.pretraining_trainer": ("PreTrainingTrainer",),
    "recursive.recursive_distillation": ("Generation", "recursive_distillation"),
    "recursive.recursive_distillation_config": ("RecursiveDistillationConfig",),
    "seq2seq.seq2seq_fine_tuning_config": ("Seq2SeqFineTuningConfig",),
    "seq2seq.seq2seq_fine_tuning_trainer": ("Seq2SeqFineTuningTrainer",),
    "solver.solver_config": ("SolverTrainingConfig",),
    "solver.solver_trainer": ("SolverTrainer",),
    "stark.stark_config": ("StarkConfig",),
    "stark.stark_trainer": ("StarkStudent", "StarkTrainer"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
