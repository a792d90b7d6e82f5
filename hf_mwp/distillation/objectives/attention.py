"""Attention: matrices, and relations between queries, keys and values."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...losses import AttentionMSELoss, RelationLoss
from ..features import KINDS, Features, attention_inputs, read_features
from ..surviving_heads import SurvivingHeads, counterparts, keep_maps, keep_vectors, surviving_heads
from .layer_objective import LayerObjective


MOST_HEADS = 12


class HeadObjective(LayerObjective):
    """
    An objective on heads: those that are pruned while the student learns, or were before, take no part, and the others
    are compared with their own counterparts in the teacher. A derived class says what it reads of a layer (`kinds`),
    and how some heads are taken out of that (`_keep`).
    """

    kinds: Sequence[str]
    _keep: Callable[[Tensor, SurvivingHeads | None], Tensor]

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        """See [`Objective.setup`]."""
        super().setup(student, teacher, inputs)
        self._models = (student.model, teacher.model)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """See [`Objective.losses`]."""
        mask, parts = inputs.get("attention_mask"), {}
        # Asked anew each time: pruning goes on.
        heads, teacher_heads = (surviving_heads(model) for model in self._models)
        for part, [pair] in self.groups.items():
            names, teacher_names = self._names(pair)
            ours = [self._of_student(student, name) for name in names if name in self.student_reads]
            theirs = [teacher[name] for name in teacher_names if name in self.teacher_reads]
            pruned: tuple[SurvivingHeads | None, SurvivingHeads | None] = (None, None)
            if heads is not None:
                pruned = counterparts(heads[pair[0] - 1], teacher_heads and teacher_heads[pair[1] - 1])
            if not (ours and theirs) or any(each is not None and not each.places for each in pruned):
                parts[part] = sum(each.float().sum() for each in ours or [student.states[pair[0]]]) * 0.0
            elif pruned[0] is None or not any(each is not None and each.is_pruned for each in pruned):
                parts[part] = self._compare(ours, theirs, mask)
            else:
                kept = (
                    [self._keep(each, heads) for each in side]
                    for side, heads in zip((ours, theirs), pruned, strict=True)
                )
                parts[part] = self._compare_kept(*kept, mask)
        return parts

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        if 0 in pair:
            raise ValueError(
                f"The layer mapping {list(pair)} names an embedding output, which has no attention, and so no "
                "queries, keys or values: pairs of layers are counted from 1 here."
            )
        return tuple([f"{kind}_{layer}" for kind in self.kinds] for layer in pair)

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        """As `_compare`, of what some heads were taken out of."""
        return self._compare(ours, theirs, mask)


class AttentionMaps(HeadObjective):
    """
    Attention matrices of the student follow those of the teacher. Both models need eager attention, and a teacher
    cache does not keep the matrices. Pruned heads take no part, see [`HeadObjective`].

    Args:
        loss (`nn.Module`, *optional*): [`AttentionMSELoss`], head by head, if not given.
        name (`str`, *optional*, defaults to `"attention"`), kwargs: See [`LayerObjective`].
    """

    options = {"output_hidden_states": True, "output_attentions": True}
    cacheable = False
    kinds = ("attention",)
    _keep = staticmethod(keep_maps)

    def __init__(self, loss: nn.Module | None = None, name: str = "attention", **kwargs) -> None:
        super().__init__(AttentionMSELoss() if loss is None else loss, name=name, **kwargs)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        for who, features in (("student", student), ("teacher", teacher)):
            if not features.attentions:
                raise ValueError(
                    f"The {who} gives no attention matrices: only eager attention does. Load it with "
                    '`attn_implementation="eager"`, or call `set_attn_implementation("eager")`.'
                )
        # Finds numbers of heads that differ.
        self.losses(student, teacher, inputs)


class AttentionRelations(HeadObjective):
    """
    MiniLM's relations: how the queries, the keys and the values of a layer are related among each other follows the
    teacher. Widths and numbers of heads may differ, and any attention implementation will do: the vectors are read by
    hooks. MiniLMv2 has the student's last layer alone learn from one layer of the teacher (`layer_mapping=[(3, 12)]`).
    Vectors of pruned heads take no part, see [`HeadObjective`]; those that are left are cut into as many relation
    heads as divide their widths.

    Args:
        heads (`int`, *optional*):
            Relation heads; by default 12, or the largest divisor of it into which all widths can be cut.
        kinds (`Sequence[str]`, *optional*, defaults to `("query", "key", "value")`): Whose relations are added up.
        name (`str`, *optional*, defaults to `"relations"`), kwargs: See [`LayerObjective`].

    Raises:
        ValueError: `kinds` that there are not, or none.
    """

    _keep = staticmethod(keep_vectors)

    def __init__(
        self, heads: int | None = None, kinds: Sequence[str] = KINDS, name: str = "relations", **kwargs
    ) -> None:
        super().__init__(RelationLoss(heads or 1), name=name, **kwargs)
        self.heads, self.kinds = heads, tuple(kinds)
        if not self.kinds or not {*self.kinds} <= {*KINDS}:
            raise ValueError(f"`kinds` are some of {list(KINDS)}, got {list(self.kinds)}.")

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        found = []
        for who, features, names in (
            ("student", student, self.student_reads),
            ("teacher", teacher, self.teacher_reads),
        ):
            layers = attention_inputs(features.model)
            if len(layers) != len(features.states) - 1:
                raise ValueError(
                    f"The {who}, a `{type(features.model).__name__}`, has {len(features.states) - 1} layers, but "
                    f"queries, keys and values were found in {len(layers)}: relations are for models with a module "
                    "for each of them in each layer."
                )
            # A layer without heads has none.
            there = tuple(name for name in names if layers[int(name.rpartition("_")[2]) - 1])
            setattr(self, f"{who}_reads", there)
            found.append(read_features(features.model, inputs, {"output_hidden_states": True}, there))
        if self.heads is None:
            reads = zip(found, (self.student_reads, self.teacher_reads), strict=True)
            self.loss = RelationLoss(
                math.gcd(MOST_HEADS, *(f[name].shape[-1] for f, names in reads for name in names))
            )
        with torch.no_grad():
            # Finds widths that cannot be cut.
            self.losses(*found, inputs)

    def _of_student(self, student: Features, name: str) -> Tensor:
        vectors = super()._of_student(student, name)
        if torch.is_grad_enabled() and not vectors.requires_grad:
            raise ValueError(
                f"The student's {name} has no gradient: its layer is frozen, or computed again in the backward pass. "
                'Map other layers, or set `gradient_checkpointing_kwargs={"use_reentrant": False}`.'
            )
        return vectors

    def _compare(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        return sum(self.loss(o, t, mask) for o, t in zip(ours, theirs, strict=True))

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        loss = RelationLoss(math.gcd(self.loss.heads, *(each.shape[-1] for each in (*ours, *theirs))))
        return sum(loss(o, t, mask) for o, t in zip(ours, theirs, strict=True))
