"""Base class of objectives on attention heads."""

from collections.abc import Mapping, Sequence
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
    and how to select heads from them (`_select`). Attention within windows (LED, Longformer) is not supported.
    """

    kinds: Sequence[str]

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
        before = {"encoder": [], "decoder": ["hidden"], "cross": ["hidden", "decoder_hidden"]}[self.stack]
        self._before = [sum(len(each.layers(kind)) - 1 for kind in before) for each in (student, teacher)]

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        mask, parts = self.mask(inputs), {}
        # Read in every step, since pruning may go on.
        survivors = [surviving_heads(model) for model in self._models]
        for part, [pair] in self.groups.items():
            names = self._names(pair)
            ours = [self._of_student(student, name) for name in names[0] if name in self.student_reads]
            theirs = [teacher[name] for name in names[1] if name in self.teacher_reads]
            of_model = zip(survivors, self._before, pair, strict=True)
            heads = counterparts(*(found and found[before + layer - 1] for found, before, layer in of_model))
            if not (ours and theirs) or any(each is not None and not each.places for each in heads):
                # A loss of zero with a gradient, since distributed training waits for the gradient of each parameter.
                parts[part] = sum(each.float().sum() for each in ours or [student.layers(self.hidden)[pair[0]]]) * 0.0
            elif any(each is not None and each.is_pruned for each in heads):
                both = zip((ours, theirs), heads, strict=True)
                kept = ([each if h is None else self._select(each, h) for each in side] for side, h in both)
                parts[part] = self._compare_kept(*kept, mask)
            else:
                parts[part] = self._compare(ours, theirs, mask)
        return parts

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        if 0 in pair:
            raise ValueError(
                f"The layer mapping {list(pair)} contains an embedding output, which has no attention, queries, keys "
                "or values. Map layers from 1 on."
            )
        return tuple([f"{self.prefix}{kind}_{layer}" for kind in self.kinds] for layer in pair)

    def _select(self, values: Tensor, heads: SurvivingHeads) -> Tensor:
        raise NotImplementedError

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        """Return the loss between features that both have only the heads left in the student."""
        return self._compare(ours, theirs, mask)
