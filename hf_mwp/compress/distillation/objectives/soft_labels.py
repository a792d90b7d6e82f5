"""Objective on the teacher's probabilities: knowledge distillation."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.models.batch_inputs import num_rows
from hf_mwp.compress.models.model_kind import has_exclusive_classes, kind_of, unwrapped
from hf_mwp.compress.models.prediction_kind import PredictionKind
from hf_mwp.utils.checked_types import checked

from ..features import Features
from ..top_classes import TOP_CLASSES, TopClasses
from .prediction_objective import PredictionObjective


class SoftLabels(PredictionObjective):
    """
    Knowledge distillation (KD): trains the student's probabilities to match the teacher's (Distilling the Knowledge in
    a Neural Network, https://huggingface.co/papers/1503.02531). For a classifier, these are the probabilities of the
    classes, for image segmentation at each pixel; for a tree decoder, those of the symbols at each position of the
    expression; for a language model, those of the next token. For a solver that scores candidates, the loss has two
    parts: whether each candidate is accepted, and which candidate is the answer. For question answering, its two parts
    have half the weight: the probabilities of each token to be the first one and the last one of the answer. For
    pretraining, they are the probabilities of tokens and of the relation of two sentences.

    Args:
        temperature (`float`), scale_by_square (`bool`), direction (`str`), skew_alpha (`float`):
            See [`LogitDistillationLoss`].
        weight (`float`), name (`str`): See [`Objective`].
        top_k (`int`, *optional*, defaults to 64):
            For causal language models, a teacher cache stores the probabilities of the teacher's `top_k` most likely
            tokens, among them the label, and of all others together. The loss then compares these `top_k + 1`
            probabilities. A cache takes `6 * top_k + 2` bytes for each position with a label.
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
        top_k: int = 64,
    ) -> None:
        super().__init__(name, weight)
        self.top_k = top_k
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
            if prediction.is_vocabulary and student_shape is not None and teacher_shape is not None:
                # Models may have spare rows in their vocabularies; `num_classes` leaves them out.
                student_shape = student_shape[:-1]
                teacher_shape = teacher_shape[:-1]
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
            self.num_classes = self._count_shared_classes(student, teacher)
            self.loss = self._make_loss(self.kind.reduction)
            if prediction.is_vocabulary:
                num_classes = self.num_classes or student["logits"].shape[-1]
                self.top_classes = TopClasses(self.top_k, self.temperature, num_classes)

    def _count_shared_classes(self, student: Features, teacher: Features) -> int | None:
        """Return the number of first classes that student and teacher share, or `None` if they share all."""
        if not self.kind.prediction.is_vocabulary:
            return None
        sizes = {student["logits"].shape[-1], teacher["logits"].shape[-1]}
        num_shared = teacher.num_shared_tokens
        if len(sizes) == 1 and num_shared is None:
            return None
        return min(sizes) if num_shared is None else min(*sizes, num_shared)

    def _make_loss(self, reduction: str) -> nn.Module:
        return LogitDistillationLoss(
            self.temperature, self.scale_by_square, reduction, self.direction, self.skew_alpha, self.num_classes
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
            losses[self._part(name)] = self.loss(*arguments, **cached_classes(teacher))
        return losses

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        counts = super().num_items(inputs)
        for name in self.kind.prediction.row_outputs:
            counts[self._part(name)] = num_rows(inputs)
        return counts


def cached_classes(teacher: Features) -> dict[str, Tensor]:
    """Return the argument of a loss for the classes whose probabilities a cache has stored, if it has not all."""
    top_classes = teacher.get(TOP_CLASSES)
    return {} if top_classes is None else {"top_classes": top_classes}


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
