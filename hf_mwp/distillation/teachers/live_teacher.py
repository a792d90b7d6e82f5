"""A teacher that is asked about every batch."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ..features import Features, read_features
from .teacher_request import TeacherRequest


class LiveTeacher:
    """A frozen model, perhaps wrapped for distributed training, that is run on every batch."""

    def __init__(self, model: nn.Module, request: TeacherRequest) -> None:
        self.model, self.request = model, request

    @torch.no_grad()
    def outputs(self, inputs: Mapping[str, Any]) -> Features:
        """What the teacher says to a batch; nothing if nothing is asked of it."""
        if not self.request.features:
            return Features({})
        return read_features(self.model.eval(), inputs, self.request.options, self.request.features)
