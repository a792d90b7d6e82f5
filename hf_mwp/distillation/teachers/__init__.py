"""Where a teacher's answers come from: it is asked, or they are on disk. Neither source knows a trainer."""

from .cached_teacher import CachedTeacher
from .live_teacher import LiveTeacher
from .teacher_request import TeacherRequest


__all__ = ["CachedTeacher", "LiveTeacher", "TeacherRequest"]
