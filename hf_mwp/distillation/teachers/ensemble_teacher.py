"""Several teachers as one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...models.model_kind import kind_of
from ...usage_error import UsageError
from .cache.output_layout import FORBIDDEN


TEACHER_INPUTS = "teacher_inputs"


class EnsembleTeacher(nn.Module):
    """
    Models whose predictions are averaged, for the `teacher_model` of [`DistillationTrainer`], which makes one of a
    list of teachers. Hidden states and attention are those of the first model.

    Its logits are the logarithm of the mean of the members' probabilities, so a temperature softens the mean, not the
    members. A class stays forbidden (the smallest finite number) if all members forbid it. Scores of a single class
    (regression) are averaged as they are.

    Args:
        members (`Sequence[nn.Module]`): One or more models with the same classes in the same order.

    Raises:
        UsageError: there is no member; in `forward`, one returns no logits, or logits of another shape.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        if not members:
            raise UsageError("An ensemble needs at least one teacher.")
        self.members = nn.ModuleList(members)

    def get_encoder(self) -> nn.Module:
        """The encoder of the first member: what features are read of."""
        first = self.members[0]
        return first.get_encoder() if hasattr(first, "get_encoder") else first

    def get_decoder(self) -> nn.Module:
        """The decoder of the first member, which must have one."""
        return self.members[0].get_decoder()

    def forward(self, teacher_inputs: Mapping[str, Mapping[str, Tensor]] | None = None, **inputs: Any) -> Any:
        """
        Return the first member's output with the mean in place of its logits, and without its loss.

        Args:
            teacher_inputs (`Mapping[str, Mapping[str, Tensor]]`, *optional*):
                By number of a member from `"0"` on, what it reads in place of `inputs` of the same names.
            inputs: Arguments of all members; `output_...` is for the first one alone.
        """
        outputs = []
        for number, member in enumerate(self.members):
            asked = {name: value for name, value in inputs.items() if not (number and name.startswith("output_"))}
            outputs.append(member(**{**asked, **(teacher_inputs or {}).get(str(number), {})}))
        if not hasattr(outputs[0], "get"):
            return outputs[0]
        prediction, positions = kind_of(self.members[0], outputs[0].get("logits")).prediction, None
        if teacher_inputs:
            # Another tokenizer may cut a long text later than the student's: what the student cannot see is forbidden.
            positions = inputs.get("number_positions")
        scores = {}
        for name in prediction.outputs:
            logits = [_scores_of(output, name, number) for number, output in enumerate(outputs, 1)]
            shapes = [tuple(each.shape) for each in logits]
            if len({*shapes}) > 1:
                raise UsageError(
                    f"The teachers' {name} have the shapes {', '.join(map(str, shapes))}: only predictions of the "
                    "same classes can be averaged."
                )
            mean = prediction.logits(name, mean_scores([prediction.classes(name, each) for each in logits]))
            scores[name] = mean if positions is None else prediction.without_missing(name, mean, positions)
        output = outputs[0]
        kept = {name: value for name, value in output.items() if name != "loss"}
        return type(output)(**(kept | scores))


def mean_scores(logits: Sequence[Tensor]) -> Tensor:
    """fp32 logits of the mean of the probabilities of some logits `(..., classes)`, see [`EnsembleTeacher`]."""
    stacked = torch.stack([each.float() for each in logits])
    if stacked.shape[-1] == 1:
        return stacked.mean(0)
    mean = stacked.log_softmax(-1).logsumexp(0) - math.log(len(stacked))
    return mean.masked_fill((stacked <= FORBIDDEN).all(0), torch.finfo(mean.dtype).min)


def members_of(teacher: nn.Module) -> list[nn.Module]:
    """The models that a teacher consists of: itself, if it is no ensemble."""
    return list(teacher.members) if isinstance(teacher, EnsembleTeacher) else [teacher]


def _scores_of(output: Any, name: str, number: int) -> Tensor:
    scores = output.get(name) if hasattr(output, "get") else None
    if scores is None:
        raise UsageError(f"Teacher {number} returns no {name}: there is nothing of it to average. Leave it out.")
    return scores
