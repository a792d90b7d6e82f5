"""Which features of a student are compared with which of its teacher's, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .feature_projections import FeatureProjections, student_states
from .layer_mapping import map_layers


PAPER_WEIGHTS = [1.0, 0.9, 1.0]  # for three layers: the paper pays more attention to the first and the last one


class FeatureMatching:
    """
    The part of a distillation's loss that looks inside the models.

    What is read of each pair of layers is the loss's choice (its attribute `reads`): `"state"`, the hidden states of
    the layer; `"states"`, those of the layer and of the pair before it, the embedding output before the first;
    `"attention"`, its attention matrices. Where the teacher has a bottleneck network after a layer, its narrow states
    stand for that layer.

    Args:
        hidden_loss (`nn.Module`, *optional*):
            Loss of each pair of layers.
        embedding_loss (`nn.Module`, *optional*):
            Loss of the embedding outputs.
        layer_mapping (`str` or sequence of pairs, *optional*, defaults to `"uniform"`):
            See [`map_layers`].
        hidden_weights (`list[float]`, *optional*):
            One per pair; 1.0, 0.9, 1.0 for three pairs, else 1.0 each.
        embedding_weight (`float`, *optional*, defaults to 1.0):
            Weight of the embedding loss.
        use_bottlenecks (`bool`, *optional*, defaults to `True`):
            Whether the narrow states of bottleneck networks are the targets where there are any.
    """

    def __init__(
        self,
        hidden_loss: nn.Module | None,
        embedding_loss: nn.Module | None,
        layer_mapping: str | Sequence[Sequence[int]] = "uniform",
        hidden_weights: list[float] | None = None,
        embedding_weight: float = 1.0,
        use_bottlenecks: bool = True,
    ) -> None:
        self.hidden_loss, self.embedding_loss = hidden_loss, embedding_loss
        self.layer_mapping, self.use_bottlenecks = layer_mapping, use_bottlenecks
        self.hidden_weights, self.embedding_weight = hidden_weights, embedding_weight
        self.layers: list[tuple[int, int]] = []
        self.weights: list[float] = []
        self.narrow: list[int] = []
        self.projections = FeatureProjections({})

    def __bool__(self) -> bool:
        return self.hidden_loss is not None or self.embedding_loss is not None

    @property
    def reads_attention(self) -> bool:
        """Whether attention matrices are compared."""
        return getattr(self.hidden_loss, "reads", "state") == "attention"

    def plan(self, student: Any, teacher: Any, bottleneck_layers: Sequence[int] = ()) -> None:
        """
        Decides what is compared with what; the projections are new ones.

        Args:
            student (`ModelOutput`), teacher (`ModelOutput`): Outputs for the same batch.
            bottleneck_layers (`Sequence[int]`, *optional*): The teacher's layers that have one.

        Raises:
            ValueError: a mapping or weights that do not fit the models, or no attention where it is to be compared.
        """
        self.layers, features = [], {}
        self.narrow = list(bottleneck_layers) if self.use_bottlenecks else []
        if self:
            ours, theirs = student_states(student), student_states(teacher)
            if self.hidden_loss is not None:
                self.layers = map_layers(self.layer_mapping, len(ours) - 1, len(theirs) - 1)
                if self.reads_attention:
                    self._check_attention(student, teacher)
                elif getattr(self.hidden_loss, "needs_equal_width", True):
                    for s, t in (pair for flow in self._flows() for pair in flow):
                        features[f"hidden_{s}"] = (s, ours[s].shape[-1], self._target(teacher, t).shape[-1])
            if self.embedding_loss is not None:
                features["embedding"] = (0, ours[0].shape[-1], theirs[0].shape[-1])
        self.weights = self._resolve_weights()
        self.projections = FeatureProjections(features)

    def teacher_states(self) -> list[tuple[int, bool]]:
        """Which states of the teacher are compared: layer (0 is the embedding output), and whether it is the narrow
        state of the bottleneck network after it."""
        layers = [] if self.reads_attention else [t for flow in self._flows() for _, t in flow]
        states = [(layer, layer in self.narrow) for layer in layers]
        return states if self.embedding_loss is None else [*states, (0, False)]

    def count(self, mask: Tensor) -> Tensor:
        """Over how many items the embedding loss and the hidden loss average a batch."""
        return torch.stack([mask.sum(), self._count_hidden(mask)])

    def losses(
        self, student: Any, teacher: Any, mask: Tensor | None, totals: Tensor | None = None
    ) -> dict[str, tuple[Tensor, float]]:
        """
        The parts of the loss and their weights.

        Args:
            student (`ModelOutput`), teacher (`ModelOutput`): Outputs for the same batch.
            mask (`Tensor`, *optional*): `(batch, tokens)`, its attention mask.
            totals (`Tensor`, *optional*):
                The counts ([`~FeatureMatching.count`]) of an average batch of the step. Each part is then multiplied
                by the batch's share, so that their mean over batches is the mean over all items of the step.

        Returns:
            `dict[str, tuple[Tensor, float]]`: by name, `hidden_{student layer}` and `embedding`.
        """
        states, projected = self.projections.split(student)
        tokens = hidden = 1.0
        if totals is not None:
            tokens, hidden = mask.sum() / totals[0], self._count_hidden(mask) / totals[1].clamp(min=1e-9)
        parts = {}
        for weight, flow in zip(self.weights, self._flows(), strict=True):
            name = f"hidden_{flow[-1][0]}"
            if self.reads_attention:
                ours, theirs = self._attentions(student, teacher, flow[-1])
            else:
                # The same layer may be projected here and, for the embedding loss, by another map.
                found = [projected.get(f"hidden_{s}", states[s]) for s, _ in flow]
                targets = [self._target(teacher, t) for _, t in flow]
                ours, theirs = (found, targets) if len(flow) > 1 else (found[0], targets[0])
            parts[name] = self.hidden_loss(ours, theirs, mask) * hidden, weight
        if self.embedding_loss is not None:
            loss = self.embedding_loss(projected.get("embedding", states[0]), student_states(teacher)[0], mask)
            parts["embedding"] = loss * tokens, self.embedding_weight
        return parts

    def _flows(self) -> list[list[tuple[int, int]]]:
        """For each pair of layers all those of which the loss reads the states, that pair last."""
        if getattr(self.hidden_loss, "reads", "state") != "states":
            return [[pair] for pair in self.layers]
        before, flows = (0, 0), {}
        for pair in sorted(self.layers):
            # A mapping may name the embedding outputs itself.
            before = pair if pair[0] == 0 else before
            flows[pair] = [before, pair]
            before = pair
        return [flows[pair] for pair in self.layers]

    def _target(self, teacher: Any, layer: int) -> Tensor:
        if layer in self.narrow:
            return teacher["bottleneck_states"][self.narrow.index(layer)]
        return student_states(teacher)[layer]

    def _count_hidden(self, mask: Tensor) -> Tensor:
        return self.hidden_loss.count(mask) if hasattr(self.hidden_loss, "count") else mask.sum()

    def _resolve_weights(self) -> list[float]:
        weights, count = self.hidden_weights, len(self.layers)
        if weights is None:
            return PAPER_WEIGHTS if count == len(PAPER_WEIGHTS) else [1.0] * count
        if len(weights) != count:
            raise ValueError(
                f"`hidden_weights` has {len(weights)} entries, but the layer mapping has {count} pairs: {self.layers}."
            )
        return list(weights)

    def _check_attention(self, student: Any, teacher: Any) -> None:
        for who, output in (("student", student), ("teacher", teacher)):
            if not attention_maps(output):
                raise ValueError(
                    f"The {who} gives no attention matrices: only eager attention does. Load it with "
                    '`attn_implementation="eager"`, or call `set_attn_implementation("eager")`.'
                )
        for pair in self.layers:
            if 0 in pair:
                raise ValueError(
                    f"The layer mapping {list(pair)} names an embedding output, which has no attention: pairs of "
                    "attention matrices are counted from 1."
                )
            # Finds numbers of heads that differ.
            self.hidden_loss(*self._attentions(student, teacher, pair))

    @staticmethod
    def _attentions(student: Any, teacher: Any, pair: tuple[int, int]) -> tuple[Tensor, Tensor]:
        return tuple(attention_maps(output)[layer - 1] for output, layer in zip((student, teacher), pair, strict=True))


def attention_maps(output: Any) -> tuple[Tensor, ...] | None:
    """Attention matrices of a model's output, one per layer; those of the encoder if it has a decoder as well."""
    maps = output.get("attentions")
    return output.get("encoder_attentions") if maps is None else maps
