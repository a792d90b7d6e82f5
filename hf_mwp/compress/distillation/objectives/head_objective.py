"""Base class of objectives on attention heads, and matching of heads between two models after pruning."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.architecture import cut_heads, layer_order, layer_parts
from hf_mwp.compress.models.model_kind import unwrapped
from hf_mwp.compress.pruning.gates import HeadGates

from ..features import Features
from .layer_objective import LayerObjective


WINDOWED = ("led", "longformer")


@dataclass(frozen=True)
class SurvivingHeads:
    """Heads of a layer that are neither pruned nor masked by a pruning gate."""

    total: int  # number of heads before pruning
    head_dim: int
    places: dict[int, int]  # from a head's number before pruning to its place among the unpruned heads


class HeadObjective(LayerObjective):
    """
    Base class of objectives on attention heads. Pruned heads are left out, and the others are compared with the same
    heads of the teacher. A derived class defines the features of a layer (`kinds`), and whether they are matrices
    `(batch, heads, queries, keys)` or vectors `(batch, tokens, width)`. Attention within windows (LED, Longformer) is
    not supported.
    """

    kinds: Sequence[str]
    are_matrices: bool

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        for features in (student, teacher):
            if getattr(getattr(unwrapped(features.model), "config", None), "model_type", None) in WINDOWED:
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
            ours = [student[name] for name in names[0] if name in self.student_reads]
            theirs = [teacher[name] for name in names[1] if name in self.teacher_reads]
            of_model = zip(survivors, self._before, pair, strict=True)
            heads = counterparts(*(found and found[before + layer - 1] for found, before, layer in of_model))
            known = [each for each in heads if each is not None]
            if not (ours and theirs and all(each.places for each in known)):
                # A loss of zero with a gradient, since distributed training waits for the gradient of each parameter.
                parts[part] = sum(each.float().sum() for each in ours or [student.layers(self.hidden)[pair[0]]]) * 0.0
            elif any(len(each.places) < each.total for each in known):
                both = zip((ours, theirs), heads, strict=True)
                kept = ([select_heads(each, h, self.are_matrices) for each in side] for side, h in both)
                parts[part] = self._compare_kept(*kept, mask)
            else:
                parts[part] = self._compare(ours, theirs, mask)
        return parts

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        if 0 in pair:
            raise ValueError(
                f"The layer mapping {list(pair)} has an embedding output, which has no attention or queries."
            )
        return tuple([f"{self.prefix}{kind}_{layer}" for kind in self.kinds] for layer in pair)

    def _compare_kept(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        """Return the loss between features that both have only the heads left in the student."""
        return self._compare(ours, theirs, mask)


def surviving_heads(model: nn.Module) -> list[SurvivingHeads] | None:
    """Return the surviving heads layer by layer, or `None` for a model whose heads are not known."""
    with suppress(ValueError):
        layers, gone = [], (cut_heads(model), HeadGates.closed_on(model))
        for parts, cut, closed in zip(layer_parts(model), *gone, strict=True):
            total = parts.num_heads + len(cut)
            numbers = [head for head in range(total) if head not in cut]
            places = {head: place for place, head in enumerate(numbers) if place not in closed}
            layers.append(SurvivingHeads(total, parts.head_dim, places))
        # Layers that share their weights have the same heads.
        return [layers[place] for place in layer_order(model)]


def counterparts(
    student: SurvivingHeads | None, teacher: SurvivingHeads | None
) -> tuple[SurvivingHeads | None, SurvivingHeads | None]:
    """Return the heads of two layers that are compared: those that survive in both, if both had the same number of
    heads. Otherwise all that survive in each, not in pairs; all heads if the student's are unknown."""
    if student is None:
        return None, None
    if teacher is None or teacher.total != student.total:
        return student, teacher
    common = sorted(student.places.keys() & teacher.places.keys())
    return tuple(replace(each, places={head: each.places[head] for head in common}) for each in (student, teacher))


def select_heads(values: Tensor, heads: SurvivingHeads | None, are_matrices: bool) -> Tensor:
    """Select heads (all if `None`) of attention matrices or of vectors, see [`HeadObjective`]."""
    if heads is None:
        return values
    dim, width = (1, 1) if are_matrices else (-1, heads.head_dim)
    places = [*heads.places.values()]
    if places == [*range(values.shape[dim] // width)]:
        return values
    # Slices, since the device would have to wait for an index tensor from the host.
    return torch.cat([values.narrow(dim, place * width, width) for place in places], dim)
