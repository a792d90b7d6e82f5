"""Sources of a teacher's outputs: a teacher that runs on every batch, or a cache on disk."""

from ..objectives.objective import TeacherRequest
from .cached_teacher import CachedTeacher
from .ensemble_teacher import EnsembleTeacher
from .live_teacher import LiveTeacher


__all__ = ["CachedTeacher", "EnsembleTeacher", "LiveTeacher", "TeacherRequest"]
