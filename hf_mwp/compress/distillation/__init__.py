"""Knowledge distillation: objectives, teachers, layer mapping, students and parameter mixing."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "causal_student": ("make_causal_student",),
    "feature_projections": ("FeatureProjections",),
    "layer_mapping": ("map_layers",),
    "parameter_mixing": ("average_parameters", "mix_parameters"),
    "projected_student": ("project_student",),
    "seq2seq_student": ("make_seq2seq_student",),
    "ensemble_teacher": ("EnsembleTeacher",),
    "teacher_cache": ("CacheError", "TeacherCache"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
