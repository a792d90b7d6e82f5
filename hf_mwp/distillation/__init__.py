"""Knowledge distillation: objectives, teachers, layer mapping, students and parameter mixing."""

from .feature_projections import FeatureProjections
from .layer_mapping import map_layers
from .parameter_mixing import average_parameters, mix_parameters
from .students.cut_student import cut_student
from .students.project_student import project_student
from .students.seq2seq_student import make_seq2seq_student
from .teachers.ensemble_teacher import EnsembleTeacher
from .teachers.teacher_cache import CacheError, TeacherCache


__all__ = [
    "average_parameters",
    "CacheError",
    "EnsembleTeacher",
    "FeatureProjections",
    "TeacherCache",
    "cut_student",
    "make_seq2seq_student",
    "map_layers",
    "mix_parameters",
    "project_student",
]
