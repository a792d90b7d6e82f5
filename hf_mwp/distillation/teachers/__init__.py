"""Sources of a teacher's outputs: a teacher that runs on every batch, or a cache on disk."""

from .cached_teacher import CachedTeacher
from .ensemble_teacher import EnsembleTeacher
from .live_teacher import LiveTeacher
from .output_layout import TeacherRequest


__all__ = ["CachedTeacher", "EnsembleTeacher", "LiveTeacher", "TeacherRequest"]
