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
    Base class of objectives on attention heads. Heads that were pruned before or during training are left out, and the
    others are compared with the same heads of the teacher. A derived class defines the features of a layer (`kinds`)
    and how to select heads from them (`_keep`). Attention within windows (LED, Longformer) is not supported.
    """

    kinds: Sequence[str]
    _keep: Callable[[Tensor, SurvivingHeads | None], Tensor]

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        for features in (student, teacher):
            name = getattr(getattr(features.model, "config", None), "model_type", None)
            if name in WINDOWED:
                raise ValueError(
                    f"`{self.name}` compares attention between all tokens, but `{type(features.model).__name__}` "
                    "attends within windows. Compare hidden states instead (`hidden_loss`)."
                )
        super().setup(student, teacher, inputs)
        self._models = (student.model, teacher.model)
        # Heads are listed stack by stack: encoder, decoder, cross-attention.
        before = {"encoder": [], "decoder": ["encoder"], "cross": ["encoder", "decoder"]}[self.stack]
        self._before = [sum(len(features.stack(each)) - 1 for each in before) for features in (student, teacher)]

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        mask, parts = self.mask(inputs), {}
        ours_before, theirs_before = self._before
        # Read in every step, since pruning may go on.
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
                f"The layer mapping {list(pair)} contains an embedding output, which has no attention, queries, keys "
                "or values. Map layers from 1 on."
            )
        return tuple([f"{self.prefix}{kind}_{layer}" for kind in self.kinds] for layer in pair)

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        """Return the loss of features from which pruned heads were removed."""
        return self._compare(ours, theirs, mask)
