"""Knowledge distillation: objectives, teachers, layer mapping, students and parameter mixing."""

from ..lazy_names import lazy_names


_NAMES = {
    "feature_projections": ("FeatureProjections",),
    "layer_mapping": ("map_layers",),
    "parameter_mixing": ("average_parameters", "mix_parameters"),
    "students.cut_student": ("cut_student",),
    "students.project_student": ("project_student",),
    "students.seq2seq_student": ("make_seq2seq_student",),
    "teachers.ensemble_teacher": ("EnsembleTeacher",),
    "teachers.teacher_cache": ("CacheError", "TeacherCache"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
