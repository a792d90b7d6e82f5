"""Base class of training objectives."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ...options.checks import check_numbers
from ..features import Features


class Objective:
    """
    One thing that a student is asked for while it is distilled; [`DistillationTrainer`] adds up a list of them. A
    derived class decides in `setup` what is compared with what, gives its parts of the loss in `losses`, and says in
    `num_items` over how many items each part is a mean, so that accumulated batches give what a large one would.

    Args:
        name (`str`): Its parts are logged as `loss_{name}` or begin so. No two objectives have the same.
        weight (`float`, *optional*, defaults to 1.0): Weight of the sum of its parts.

    Attributes:
        options (`Mapping[str, bool]`): Arguments of both models that make them show what it reads.
        cacheable (`bool`): Whether a teacher cache can keep what it reads.
        layers (`list[tuple[int, int]]`): Pairs (student layer, teacher layer) that are compared.
        parts (`dict[str, float]`): Names and weights of the parts.
        student_reads (`tuple[str, ...]`), teacher_reads (`tuple[str, ...]`):
            Names of what it reads, see [`~distillation.features.Features`]; a teacher cache keeps the latter.
        projections (`dict[str, tuple[str, int, int]]`): The linear maps it needs, see [`FeatureProjections`].
        temperature (`float`, *optional*), offset (`int`), listed (`tuple[str, ...]`): How it reads logits, see
            [`TeacherRequest`].
    """

    options: Mapping[str, bool] = {}
    cacheable = True
    temperature: float | None = None
    offset = 0
    listed: tuple[str, ...] = ()

    def __init__(self, name: str, weight: float = 1.0) -> None:
        check_numbers(weight=weight)
        self.name, self.weight = name, weight
        self.layers: list[tuple[int, int]] = []
        self.parts: dict[str, float] = {}
        self.student_reads: tuple[str, ...] = ()
        self.teacher_reads: tuple[str, ...] = ()
        self.projections: dict[str, tuple[str, int, int]] = {}

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        """
        Decides what is compared; called once, before training.

        Args:
            student ([`Features`]), teacher ([`Features`]): Outputs of both models for two examples.
            inputs (`Mapping`): These examples.

        Raises:
            ValueError: models that do not fit.
        """
        raise NotImplementedError

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The parts of the loss by name, scalars without their weights."""
        raise NotImplementedError

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        """Over how many items of a batch each part is a mean; `None` if nobody knows: all batches weigh the same."""
        return dict.fromkeys(self.parts)
