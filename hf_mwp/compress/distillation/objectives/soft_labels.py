"""Objective on the teacher's probabilities: knowledge distillation."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.models.model_kind import IMAGE_SEGMENTER, has_exclusive_classes, kind_of, unwrapped
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .prediction_objective import PredictionObjective


class SoftLabels(PredictionObjective):
    """
    Knowledge distillation (KD): trains the student's probabilities to match the teacher's (Distilling the Knowledge in
    a Neural Network, https://huggingface.co/papers/1503.02531). For a classifier, these are the probabilities of the
    classes, for image segmentation at each pixel; for a tree decoder, those of the symbols at each position of the
    expression. For a solver that scores
    candidates, the loss has two parts: whether each candidate is accepted, and which candidate is the answer.

    Args:
        temperature (`float`), scale_by_square (`bool`), direction (`str`), skew_alpha (`float`):
            See [`LogitDistillationLoss`].
        weight (`float`), name (`str`): See [`Objective`].
        loss (`nn.Module`, *optional*):
            Replaces [`LogitDistillationLoss`]. Called with student logits, teacher logits and, if there are logits for
            each position, a mask of the positions that count. Returns the mean over these positions.
    """

    @checked
    def __init__(
        self,
        temperature: float = 4.0,
        scale_by_square: bool = True,
        weight: float = 1.0,
        name: str = "soft",
        loss: nn.Module | None = None,
        direction: str = "forward",
        skew_alpha: float = 0.1,
    ) -> None:
        super().__init__(name, weight)
        self.scale_by_square, self.loss, self.direction, self.skew_alpha = scale_by_square, loss, direction, skew_alpha
        self.uses_probabilities = loss is None
        self.temperature = temperature if loss is None else float(getattr(loss, "temperature", 1.0))
        self.teacher_reads = ("logits",)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        kind = kind_of(student.model, student.get("logits"))
        configs = [getattr(unwrapped(each.model), "config", None) for each in (student, teacher)]
        if kind is IMAGE_SEGMENTER:
            _check_pixels(student, getattr(configs[0], "num_labels", None))
        prediction = kind.prediction
        for name in prediction.outputs:
            both = [each.get(name) for each in (student, teacher)]
            ours, theirs = (None if each is None else (*prediction.class_scores(name, each).shape,) for each in both)
            if ours is None or ours != theirs:
                raise ValueError(
                    f"The student's {name} have the shape {ours}, the teacher's {theirs} (`None`: no such output). "
                    f"Both must predict the same {prediction.name}: check `num_labels`, vocabulary and decoder, or "
                    "set `soft_label_weight=0` or `prediction_weight=0`."
                )
        names = [getattr(each, "id2label", None) or {} for each in configs]
        if names[0] != names[1] and sorted(map(str, names[0].values())) == sorted(map(str, names[1].values())):
            raise ValueError(
                f"The student has the classes {[*names[0].values()]}, the teacher {[*names[1].values()]}. Classes are "
                "compared by their index: create the student with the teacher's `id2label`."
            )
        super().setup(student, teacher, inputs)
        self.teacher_reads = prediction.outputs
        self.listed = prediction.outputs if prediction.is_ragged else ()
        self.parts = dict.fromkeys(map(self._part, prediction.outputs), self.weight)
        if self.uses_probabilities:
            count = prediction.class_scores("logits", student["logits"]).shape[-1]
            if count < 2 or not all(has_exclusive_classes(each.model) for each in (student, teacher)):
                raise ValueError(
                    "A regression, or several classes that can be correct at once, have no probabilities that add up "
                    'to 1. Use `TeacherValues` (`prediction_loss="mse"`), pass `SoftLabels(loss=...)` in '
                    "`objectives`, or set `soft_label_weight=0`."
                )
            self.loss = self._make_loss(self.kind.reduction)

    def _make_loss(self, reduction: str) -> nn.Module:
        return LogitDistillationLoss(
            self.temperature, self.scale_by_square, reduction, self.direction, self.skew_alpha
        )

    def _part(self, output: str) -> str:
        """Return the name of the part of the loss that compares an output."""
        return self.name if output == "logits" else f"{self.name}_{output.removesuffix('_logits')}"

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        prediction, positions = self.kind.prediction, self.positions(inputs)
        parts = {}
        for name in prediction.outputs:
            ours, theirs = (prediction.class_scores(name, each[name]) for each in (student, teacher))
            mask = prediction.mask(name, student[name], positions)
            parts[self._part(name)] = self.loss(ours, theirs, *(() if mask is None else (mask,)))
        return parts


def _check_pixels(student: Features, num_labels: int | None) -> None:
    """Raise `ValueError` unless logits with more than three dimensions are `(batch, classes, height, width)`."""
    shape = tuple(student["logits"].shape)
    if len(shape) != 4 or shape[1] != num_labels:
        name = type(unwrapped(student.model)).__name__
        raise ValueError(
            f"`{name}` returns logits of the shape {shape}. Only classes of rows `(batch, classes)`, of positions "
            f"`(batch, positions, classes)` and of pixels `(batch, num_labels={num_labels}, height, width)` can be "
            "compared. Set `soft_label_weight=0` or `prediction_weight=0`, or write an `Objective`."
        )
