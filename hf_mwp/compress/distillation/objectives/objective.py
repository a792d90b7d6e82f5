"""Base class of training objectives, and the request for the teacher outputs that they need."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from torch import Tensor

from hf_mwp.utils.checked_types import checked

from ..features import Features
from ..top_classes import TopClasses


class Objective:
    """
    Base class of the objectives that a student is trained on; [`DistillationTrainer`] adds up a list of them. A
    derived class chooses in `setup` which outputs are compared, and returns its loss in `losses`, which may have
    several named parts. `num_items` returns the number of items that each part is averaged over, so that accumulated
    batches have the same loss as one large batch.

    Args:
        name (`str`): Parts of the loss are logged as `loss_{name}`, or with this prefix. Names must be unique.
        weight (`float`, *optional*, defaults to 1.0): Weight of the sum of the parts.

    Attributes:
        options (`Mapping[str, bool]`): Arguments that make both models return the outputs to compare.
        cacheable (`bool`): Whether a teacher cache can store the outputs to compare.
        reads_modules (`bool`): Whether hooks record outputs of modules within the models.
        parts (`dict[str, float]`): Names and weights of the parts.
        student_reads (`tuple[str, ...]`), teacher_reads (`tuple[str, ...]`): Names of the outputs to compare, see
            [`~distillation.features.Features`]. A teacher cache stores `teacher_reads`.
        projections (`dict[str, tuple[str, int, int]]`): Linear maps that are needed, see [`FeatureProjections`].
        listed (`tuple[str, ...]`): Outputs with one score per item of a list, such as candidates.
        storage (`dict[str, str]`): What a teacher cache stores of other outputs, see
            [`~models.prediction_kind.PredictionKind`].
        top_classes ([`~distillation.top_classes.TopClasses`], *optional*): The logits of a large vocabulary that a
            teacher cache stores; all if `None`.
        num_examples (`int`): Number of training examples that `setup` needs, two by default.
    """

    options: Mapping[str, bool] = {}
    cacheable = True
    reads_modules = False
    listed: tuple[str, ...] = ()
    storage: Mapping[str, str] = {}
    top_classes: TopClasses | None = None
    num_examples = 2

    @checked
    def __init__(self, name: str, weight: float = 1.0) -> None:
        self.name = name
        self.weight = weight
        self.parts: dict[str, float] = {}
        self.student_reads: tuple[str, ...] = ()
        self.teacher_reads: tuple[str, ...] = ()
        self.projections: dict[str, tuple[str, int, int]] = {}

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        """Choose the outputs that are compared. Called once before training, with the outputs of both models for a
        batch of `num_examples` or more. Raises `ValueError` if the two models cannot be compared."""
        raise NotImplementedError

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the parts of the loss by name, as scalars without their weights."""
        raise NotImplementedError

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        """Return the number of items that each part is averaged over, or `None`: batches have the same weight."""
        return dict.fromkeys(self.parts)


@dataclass(frozen=True)
class TeacherRequest:
    """Teacher outputs that objectives need for each batch."""

    features: tuple[str, ...]  # names of the outputs, see [`~distillation.features.Features`]
    options: Mapping[str, bool] = field(default_factory=dict)  # arguments of `forward` that make it return them
    listed: tuple[str, ...] = ()  # outputs with one score per item of a list, such as candidates
    storage: Mapping[str, str] = field(default_factory=dict)  # what a cache stores of further outputs
    top_classes: TopClasses | None = None  # logits that a cache stores, if not all

    @classmethod
    def of(cls, objectives: Iterable[Objective]) -> Self:
        """Collect the outputs that a list of objectives reads."""
        features = set()
        options = {}
        listed = {}
        storage: dict[str, str] = {}
        top_classes = set()
        for objective in objectives:
            if objective.teacher_reads:
                features.update(objective.teacher_reads)
                options |= objective.options
                listed |= dict.fromkeys(objective.listed)
                storage |= objective.storage
                if "logits" in objective.teacher_reads:
                    top_classes.add(objective.top_classes)
        # Objectives that read different logits need all of them.
        only_choice = top_classes.pop() if len(top_classes) == 1 else None
        return cls(tuple(sorted(features)), options, tuple(listed), storage, only_choice)

    @property
    def states(self) -> list[str]:
        """Return the names of features with one vector for each token."""
        others = {"logits", *self.listed, *self.storage}
        return [name for name in self.features if name not in others]

    @property
    def logits(self) -> bool:
        """Return whether logits are requested that are scores of classes."""
        return "logits" in self.features and "logits" not in self.listed and "logits" not in self.storage
