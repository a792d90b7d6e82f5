"""Where a teacher's answers come from: it is asked, or they are on disk. Neither source knows a trainer."""

from .cached_teacher import CachedTeacher
from .ensemble_teacher import EnsembleTeacher
from .live_teacher import LiveTeacher
from .teacher_request import TeacherRequest


__all__ = ["CachedTeacher", "EnsembleTeacher", "LiveTeacher", "TeacherRequest"]
