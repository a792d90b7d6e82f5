"""Ensemble of several teachers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.model_kind import has_exclusive_classes, kind_of
from hf_mwp.compress.models.model_outputs import named_outputs, shape_of
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .teacher_cache import FORBIDDEN


TEACHER_INPUTS = "teacher_inputs"


class EnsembleTeacher(nn.Module):
    """
    Ensemble of models with the same classes in the same order, whose predictions are averaged. Can be the
    `teacher_model` of [`DistillationTrainer`], which also creates one from a list of teachers. Hidden states and
    attention are those of the first model.

    The logits are the logarithm of the members' mean probabilities, so a temperature softens the mean and not the
    members. A class is forbidden (has the smallest finite logit) if all members forbid it. Outputs of a regression are
    averaged directly. Raises `UsageError` without members, and for missing logits or logits of different shapes.
    """

    @checked
    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        if not members:
            raise UsageError("`members` is empty. Pass at least one teacher.")
        self.members = nn.ModuleList(members)

    def get_encoder(self) -> nn.Module:
        """Return the encoder of the first member, from which features are read."""
        first = self.members[0]
        return first.get_encoder() if hasattr(first, "get_encoder") else first

    def get_decoder(self) -> nn.Module:
        """Return the decoder of the first member, which must have a decoder."""
        return self.members[0].get_decoder()

    def forward(self, teacher_inputs: Mapping[str, Mapping[str, Tensor]] | None = None, **inputs: Any) -> Any:
        """Return the first member's output with averaged logits and without its loss. `teacher_inputs` are inputs that
        replace `inputs`, by a member's number from `"0"` on. Only the first member receives `output_...` arguments."""
        outputs = []
        for number, member in enumerate(self.members):
            if number == 1:
                inputs = {name: value for name, value in inputs.items() if not name.startswith("output_")}
            member_inputs = (teacher_inputs or {}).get(str(number), {})
            outputs.append(named_outputs(member, {**inputs, **member_inputs}))
        prediction = kind_of(self.members[0], outputs[0].get("logits")).prediction
        # A different tokenizer may truncate long texts later. Forbid the numbers that the student does not get.
        positions = inputs.get("number_positions") if teacher_inputs else None
        scores = {}
        for name in prediction.outputs:
            logits = [output.get(name) for output in outputs]
            shapes = [shape_of(member_logits) for member_logits in logits]
            if None in shapes:
                number = shapes.index(None) + 1
                raise UsageError(f"Teacher {number} returns no {name} to average. Remove this teacher.")
            if len({*shapes}) > 1:
                raise UsageError(f"The teachers' {name} have different shapes, {', '.join(map(str, shapes))}.")
            classes = [prediction.class_scores(name, member_logits, inputs) for member_logits in logits]
            mean = mean_scores(classes, has_exclusive_classes(self.members[0]))
            scores[name] = prediction.from_class_scores(name, mean)
            if positions is not None:
                scores[name] = prediction.mask_missing_numbers(name, scores[name], positions)
        fields = {name: value for name, value in outputs[0].items() if name != "loss"}
        return type(outputs[0])(**(fields | scores))


def mean_scores(logits: Sequence[Tensor], exclusive: bool = True) -> Tensor:
    """Return the fp32 logits of the mean probabilities of several logits `(..., classes)`, or the mean logits if the
    classes are not `exclusive`."""
    stacked = torch.stack([member_logits.float() for member_logits in logits])
    if stacked.shape[-1] == 1 or not exclusive:
        return stacked.mean(0)
    mean = stacked.log_softmax(-1).logsumexp(0) - math.log(len(stacked))
    return mean.masked_fill((stacked <= FORBIDDEN).all(0), torch.finfo(mean.dtype).min)


def members_of(teacher: nn.Module) -> list[nn.Module]:
    """Return the members of an ensemble, or the teacher itself if it is not an ensemble, not compiled."""
    teacher = getattr(teacher, "_orig_mod", teacher)
    return list(teacher.members) if isinstance(teacher, EnsembleTeacher) else [teacher]
