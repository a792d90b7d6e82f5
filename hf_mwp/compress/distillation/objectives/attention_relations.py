"""Objective on relations between queries, keys and values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hf_mwp.compress.losses import RelationLoss
from hf_mwp.utils.checked_types import checked

from ..features import KINDS, Features, attention_inputs, read_features
from .head_objective import HeadObjective


MOST_HEADS = 12


class AttentionRelations(HeadObjective):
    """
    Objective that trains the relations among the queries, among the keys and among the values of a layer to match the
    teacher's (MiniLM). Widths and numbers of heads may differ. Any attention implementation can be used, since hooks
    record the vectors. MiniLMv2 trains only the student's last layer, on one layer of the teacher
    (`layer_mapping=[(3, 12)]`). Vectors of pruned heads are left out, see [`HeadObjective`]. The remaining vectors are
    split into as many relation heads as divide their widths.

    Args:
        heads (`int`, *optional*): Number of relation heads. Defaults to the largest divisor of 12 and of all widths.
        kinds (`Sequence[str]`, *optional*, defaults to `("query", "key", "value")`): Vectors to compare.
        name (`str`, *optional*, defaults to `"relations"`), kwargs: See [`LayerObjective`].
    """

    are_matrices = False
    reads_modules = True

    @checked
    def __init__(
        self, heads: int | None = None, kinds: Sequence[str] = KINDS, name: str = "relations", **kwargs
    ) -> None:
        super().__init__(RelationLoss(heads or 1), name=name, **kwargs)
        self.heads = heads
        self.kinds = tuple(kinds)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        self.student_reads = self._existing(student, self.student_reads)
        self.teacher_reads = self._existing(teacher, self.teacher_reads)
        options = {"output_hidden_states": True}
        student = read_features(student.model, inputs, options, self.student_reads)
        teacher = read_features(teacher.model, inputs, options, self.teacher_reads)
        if self.heads is None:
            self.loss = RelationLoss(_num_heads(MOST_HEADS, *student.recorded.values(), *teacher.recorded.values()))
        with torch.no_grad():
            # Raises an error if a width cannot be split.
            self.losses(student, teacher, inputs)

    def _existing(self, features: Features, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of vectors that exist: a layer without heads has none."""
        layers = attention_inputs(features.model, self.stack)
        num_layers = len(features.layers(self.hidden)) - 1
        if len(layers) != num_layers:
            raise ValueError(
                f"`{type(features.model).__name__}` has {num_layers} layers, but separate queries, keys and values "
                f"were found in {len(layers)}. Use another objective, such as `HiddenStates`."
            )
        existing = []
        for name in names:
            layer = int(name.rpartition("_")[2])
            if layers[layer - 1]:
                existing.append(name)
        return tuple(existing)

    def _compare(self, student_vectors: list[Tensor], teacher_vectors: list[Tensor], mask: Tensor | None) -> Tensor:
        return _sum_losses(self.loss, student_vectors, teacher_vectors, mask)

    def _compare_surviving(
        self, student_vectors: list[Tensor], teacher_vectors: list[Tensor], mask: Tensor | None
    ) -> Tensor:
        loss = RelationLoss(_num_heads(self.loss.heads, *student_vectors, *teacher_vectors))
        return _sum_losses(loss, student_vectors, teacher_vectors, mask)


def _sum_losses(
    loss: RelationLoss, student_vectors: list[Tensor], teacher_vectors: list[Tensor], mask: Tensor | None
) -> Tensor:
    pairs = zip(student_vectors, teacher_vectors, strict=True)
    return sum(loss(student, teacher, mask) for student, teacher in pairs)


def _num_heads(most: int, *vectors: Tensor) -> int:
    """Return the largest divisor of `most` that divides the widths of all vectors."""
    return math.gcd(most, *(tensor.shape[-1] for tensor in vectors))
