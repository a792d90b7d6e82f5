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

    are_matrices, reads_modules = False, True

    @checked
    def __init__(
        self, heads: int | None = None, kinds: Sequence[str] = KINDS, name: str = "relations", **kwargs
    ) -> None:
        super().__init__(RelationLoss(heads or 1), name=name, **kwargs)
        self.heads, self.kinds = heads, tuple(kinds)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        reads, found = [], []
        for features, names in ((student, self.student_reads), (teacher, self.teacher_reads)):
            layers, states = attention_inputs(features.model, self.stack), features.layers(self.hidden)
            if len(layers) != len(states) - 1:
                raise ValueError(
                    f"`{type(features.model).__name__}` has {len(states) - 1} layers, but separate queries, keys and "
                    f"values were found in {len(layers)}. Use another objective, such as `HiddenStates`."
                )
            # A layer without heads has no such vectors.
            reads.append(tuple(name for name in names if layers[int(name.rpartition("_")[2]) - 1]))
            found.append(read_features(features.model, inputs, {"output_hidden_states": True}, reads[-1]))
        self.student_reads, self.teacher_reads = reads
        if self.heads is None:
            widths = (vectors.shape[-1] for features in found for vectors in features.recorded.values())
            self.loss = RelationLoss(math.gcd(MOST_HEADS, *widths))
        with torch.no_grad():
            # Raises an error if a width cannot be split.
            self.losses(*found, inputs)

    def _compare(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        return sum(self.loss(o, t, mask) for o, t in zip(ours, theirs, strict=True))

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        loss = RelationLoss(math.gcd(self.loss.heads, *(each.shape[-1] for each in (*ours, *theirs))))
        return sum(loss(o, t, mask) for o, t in zip(ours, theirs, strict=True))
