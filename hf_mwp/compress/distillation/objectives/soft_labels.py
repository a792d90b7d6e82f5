"""Objective on the teacher's probabilities: knowledge distillation."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.models.model_kind import has_exclusive_classes, kind_of, num_rows, unwrapped
from hf_mwp.compress.models.prediction_kind import PredictionKind
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .prediction_objective import PredictionObjective


class SoftLabels(PredictionObjective):
    """
    Knowledge distillation (KD): trains the student's probabilities to match the teacher's (Distilling the Knowledge in
    a Neural Network, https://huggingface.co/papers/1503.02531). For a classifier, these are the probabilities of the
    classes, for image segmentation at each pixel; for a tree decoder, those of the symbols at each position of the
    expression. For a solver that scores
    candidates, the loss has two parts: whether each candidate is accepted, and which candidate is the answer. For
    question answering, its two parts have half the weight, and compare the probabilities of the tokens to be the first
    and the last one of the answer; for pretraining, they are those of tokens and of sentences.

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
        self.scale_by_square = scale_by_square
        self.loss = loss
        self.direction = direction
        self.skew_alpha = skew_alpha
        self.uses_probabilities = loss is None
        self.temperature = temperature if loss is None else float(getattr(loss, "temperature", 1.0))
        self.teacher_reads = ("logits",)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        student_config = getattr(unwrapped(student.model), "config", None)
        teacher_config = getattr(unwrapped(teacher.model), "config", None)
        model_kind = kind_of(student.model, student.get("logits"))
        model_kind.check_shape(student.model, student.get("logits"))
        prediction = model_kind.prediction
        for name in prediction.outputs:
            student_shape = _class_shape(prediction, name, student)
            teacher_shape = _class_shape(prediction, name, teacher)
            if student_shape is None or student_shape != teacher_shape:
                raise ValueError(
                    f"The student's {name} have the shape {student_shape}, the teacher's {teacher_shape} (`None`: no "
                    f"such output). Both must predict the same {prediction.name}: check `num_labels`, vocabulary and "
                    "decoder, or set `soft_label_weight=0` or `prediction_weight=0`."
                )
        _check_class_names(student_config, teacher_config)
        super().setup(student, teacher, inputs)
        self.teacher_reads = prediction.outputs
        self.listed = prediction.outputs if prediction.is_ragged else ()
        self.storage = prediction.storage
        self.parts = dict.fromkeys(map(self._part, prediction.outputs), self.weight * prediction.part_weight)
        if self.uses_probabilities:
            first = prediction.outputs[0]
            num_classes = prediction.class_scores(first, student[first]).shape[-1]
            exclusive = has_exclusive_classes(student.model) and has_exclusive_classes(teacher.model)
            if num_classes < 2 or not exclusive:
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
        if output == "logits":
            return self.name
        return f"{self.name}_{output.removesuffix('_logits')}"

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        prediction = self.kind.prediction
        positions = self.positions(inputs)
        losses = {}
        for name in prediction.outputs:
            student_scores = prediction.class_scores(name, student[name], inputs)
            teacher_scores = prediction.class_scores(name, teacher[name], inputs)
            arguments = [student_scores, teacher_scores]
            mask = prediction.mask(name, student[name], positions)
            if mask is not None:
                arguments.append(mask)
            losses[self._part(name)] = self.loss(*arguments)
        return losses

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        counts = super().num_items(inputs)
        for name in self.kind.prediction.row_outputs:
            counts[self._part(name)] = num_rows(inputs)
        return counts


def _class_shape(prediction: PredictionKind, name: str, features: Features) -> tuple[int, ...] | None:
    """Return the shape of the scores of classes in an output, or `None` if the model has no such output."""
    logits = features.get(name)
    if logits is None:
        return None
    return tuple(prediction.class_scores(name, logits).shape)


def _check_class_names(student_config: Any, teacher_config: Any) -> None:
    """Raise `ValueError` if two models have the same classes in a different order."""
    student_names = getattr(student_config, "id2label", None) or {}
    teacher_names = getattr(teacher_config, "id2label", None) or {}
    same_names = sorted(map(str, student_names.values())) == sorted(map(str, teacher_names.values()))
    if same_names and student_names != teacher_names:
        raise ValueError(
            f"The student has the classes {[*student_names.values()]}, the teacher {[*teacher_names.values()]}. "
            "Classes are compared by their index: create the student with the teacher's `id2label`."
        )
