"""Base class of objectives on attention heads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from ...features import Features
from ...surviving_heads import SurvivingHeads, counterparts, surviving_heads
from .layer_objective import LayerObjective


WINDOWED = ("led", "longformer")


class HeadObjective(LayerObjective):
    """
    An objective on heads: those that are pruned while the student learns, or were before, take no part, and the others
    are compared with their own counterparts in the teacher. A derived class says what it reads of a layer (`kinds`),
    and how some heads are taken out of that (`_keep`). Attention within windows (LED, Longformer) is refused.
    """

    kinds: Sequence[str]
    _keep: Callable[[Tensor, SurvivingHeads | None], Tensor]

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        """See [`Objective.setup`]."""
        for features in (student, teacher):
            name = getattr(getattr(features.model, "config", None), "model_type", None)
            if name in WINDOWED:
                raise ValueError(
                    f"`{self.name}` compares attention between all tokens, but `{type(features.model).__name__}` "
                    "attends within windows: compare hidden states (`hidden_loss`)."
                )
        super().setup(student, teacher, inputs)
        self._models = (student.model, teacher.model)
        # Heads are listed stack by stack: encoder, decoder, cross-attention.
        before = {"encoder": [], "decoder": ["encoder"], "cross": ["encoder", "decoder"]}[self.stack]
        self._before = [sum(len(features.stack(each)) - 1 for each in before) for features in (student, teacher)]

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """See [`Objective.losses`]."""
        mask, parts = self.mask(inputs), {}
        ours_before, theirs_before = self._before
        # Asked anew each time: pruning goes on.
        heads, teacher_heads = (surviving_heads(model) for model in self._models)
        for part, [pair] in self.groups.items():
            names, teacher_names = self._names(pair)
            ours = [self._of_student(student, name) for name in names if name in self.student_reads]
            theirs = [teacher[name] for name in teacher_names if name in self.teacher_reads]
            pruned: tuple[SurvivingHeads | None, SurvivingHeads | None] = (None, None)
            if heads is not None:
                pruned = counterparts(
                    heads[ours_before + pair[0] - 1], teacher_heads and teacher_heads[theirs_before + pair[1] - 1]
                )
            if not (ours and theirs) or any(each is not None and not each.places for each in pruned):
                parts[part] = sum(each.float().sum() for each in ours or [student.stack(self.stack)[pair[0]]]) * 0.0
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
        return tuple([f"{self.prefix}{kind}_{layer}" for kind in self.kinds] for layer in pair)

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        """As `_compare`, of what some heads were taken out of."""
        return self._compare(ours, theirs, mask)
