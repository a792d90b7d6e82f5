"""Fine-tuning and pretraining of solvers. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "pretraining_config": ("PreTrainingConfig",),
    "pretraining_trainer": ("PreTrainingTrainer",),
    "solver_config": ("SolverTrainingConfig",),
    "solver_trainer": ("SolverTrainer",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
