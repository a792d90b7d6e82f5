"""What carries a teacher's knowledge over to a student."""

from .feature_projections import FeatureProjections
from .layer_mapping import map_layers
from .parameter_mixing import mix_parameters
from .student_initialization import cut_student
from .student_projection import project_student
from .teacher_cache import CacheError, TeacherCache


__all__ = [
    "CacheError",
    "FeatureProjections",
    "TeacherCache",
    "cut_student",
    "map_layers",
    "mix_parameters",
    "project_student",
]
