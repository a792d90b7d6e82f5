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
    num_unpruned: int
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
            config = getattr(unwrapped(features.model), "config", None)
            if getattr(config, "model_type", None) in WINDOWED:
                raise ValueError(
                    f"`{self.name}` compares attention between all tokens, but `{type(features.model).__name__}` "
                    "attends within windows. Compare hidden states instead (`hidden_loss`)."
                )
        super().setup(student, teacher, inputs)
        self._models = (student.model, teacher.model)
        # Heads are listed stack by stack: encoder, decoder, cross-attention.
        stacks_before = {"encoder": [], "decoder": ["hidden"], "cross": ["hidden", "decoder_hidden"]}[self.stack]
        self._student_offset = 0
        self._teacher_offset = 0
        for stack in stacks_before:
            self._student_offset += len(student.layers(stack)) - 1
            self._teacher_offset += len(teacher.layers(stack)) - 1

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        mask = self.mask(inputs)
        student_model, teacher_model = self._models
        # Read in every step, since pruning may go on.
        student_survivors = surviving_heads(student_model)
        teacher_survivors = surviving_heads(teacher_model)
        losses = {}
        for name, [pair] in self.groups.items():
            student_layer, teacher_layer = pair
            student_names, teacher_names = self._names(pair)
            student_features = [student[read] for read in student_names if read in self.student_reads]
            teacher_features = [teacher[read] for read in teacher_names if read in self.teacher_reads]
            student_index = self._student_offset + student_layer - 1
            teacher_index = self._teacher_offset + teacher_layer - 1
            student_heads = student_survivors[student_index] if student_survivors else None
            teacher_heads = teacher_survivors[teacher_index] if teacher_survivors else None
            student_heads, teacher_heads = counterparts(student_heads, teacher_heads)
            has_heads = True
            is_pruned = False
            for heads in (student_heads, teacher_heads):
                if heads is None:
                    continue
                if not heads.places:
                    has_heads = False
                if len(heads.places) < heads.total:
                    is_pruned = True
            if not (student_features and teacher_features and has_heads):
                # A loss of zero with a gradient, since distributed training waits for the gradient of each parameter.
                student_features = student_features or [student.layers(self.hidden)[student_layer]]
                losses[name] = sum(feature.float().sum() for feature in student_features) * 0.0
            elif is_pruned:
                student_features = self._select(student_features, student_heads)
                teacher_features = self._select(teacher_features, teacher_heads)
                losses[name] = self._compare_surviving(student_features, teacher_features, mask)
            else:
                losses[name] = self._compare(student_features, teacher_features, mask)
        return losses

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        if 0 in pair:
            raise ValueError(
                f"The layer mapping {list(pair)} has an embedding output, which has no attention or queries."
            )
        student_layer, teacher_layer = pair
        student_names = []
        teacher_names = []
        for feature in self.kinds:
            student_names.append(f"{self.prefix}{feature}_{student_layer}")
            teacher_names.append(f"{self.prefix}{feature}_{teacher_layer}")
        return student_names, teacher_names

    def _select(self, features: list[Tensor], heads: SurvivingHeads | None) -> list[Tensor]:
        return [select_heads(values, heads, self.are_matrices) for values in features]

    def _compare_surviving(
        self, student_features: list[Tensor], teacher_features: list[Tensor], mask: Tensor | None
    ) -> Tensor:
        """Return the loss between features that both have only the heads left in the student."""
        return self._compare(student_features, teacher_features, mask)


def surviving_heads(model: nn.Module) -> list[SurvivingHeads] | None:
    """Return the surviving heads layer by layer, or `None` for a model whose heads are not known."""
    with suppress(ValueError):
        layers = []
        closed_heads = HeadGates.closed_on(model)
        for linears, pruned, closed in zip(layer_parts(model), cut_heads(model), closed_heads, strict=True):
            total = linears.num_heads + len(pruned)
            unpruned = [head for head in range(total) if head not in pruned]
            positions = {head: position for position, head in enumerate(unpruned) if position not in closed}
            layers.append(SurvivingHeads(total, linears.num_heads, linears.head_dim, positions))
        # Layers that share their weights have the same heads.
        return [layers[index] for index in layer_order(model)]


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
    student_places = {head: student.places[head] for head in common}
    teacher_places = {head: teacher.places[head] for head in common}
    return replace(student, places=student_places), replace(teacher, places=teacher_places)


def select_heads(values: Tensor, heads: SurvivingHeads | None, are_matrices: bool) -> Tensor:
    """Select heads (all if `None`) of attention matrices or of vectors, see [`HeadObjective`]. Of keys and values that
    several heads share, those of the selected heads are returned."""
    if heads is None:
        return values
    dim = 1 if are_matrices else -1
    width = 1 if are_matrices else heads.head_dim
    num_heads = values.shape[dim] // width
    queries_per_head = heads.num_unpruned // max(num_heads, 1)
    positions = sorted({position // max(queries_per_head, 1) for position in heads.places.values()})
    if positions == list(range(num_heads)):
        return values
    # Slices, since the device would have to wait for an index tensor from the host.
    return torch.cat([values.narrow(dim, position * width, width) for position in positions], dim)
