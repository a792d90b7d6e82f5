"""Trainers and their configs for any Transformers model. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "causal_lm_distillation_config": ("CausalLMDistillationConfig",),
    "causal_rows": ("CausalCollator", "tokenize_causal_rows"),
    "distillation_config": ("DistillationConfig",),
    "distillation_trainer": ("DistillationTrainer",),
    "mixing_callback": ("ParameterMixingCallback",),
    "generations": (
        "Generation",
        "recursive_distillation",
    ),
    "recursive_distillation_config": ("RecursiveDistillationConfig",),
    "seq2seq_distillation_config": ("Seq2SeqDistillationConfig",),
    "seq2seq_distillation_trainer": ("Seq2SeqDistillationTrainer",),
    "seq2seq_fine_tuning_config": ("Seq2SeqFineTuningConfig",),
    "seq2seq_fine_tuning_trainer": ("Seq2SeqFineTuningTrainer",),
    "stark_config": ("StarkConfig",),
    "stark_student": ("StarkStudent",),
    "stark_trainer": ("StarkTrainer",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
