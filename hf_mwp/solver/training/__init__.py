"""Fine-tuning and pretraining of solvers. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "math_seq2seq_config": ("MathSeq2SeqDistillationConfig", "MathSeq2SeqFineTuningConfig"),
    "pretraining_config": ("PreTrainingConfig",),
    "pretraining_trainer": ("PreTrainingTrainer",),
    "solver_config": ("SolverTrainingConfig",),
    "solver_distillation_config": (
        "SolverDistillationConfig",
        "SolverRecursiveDistillationConfig",
        "SolverStarkConfig",
    ),
    "solver_trainer": ("SolverTrainer",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
