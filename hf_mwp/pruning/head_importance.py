"""How much each attention head matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from ..models.architecture import find_encoder, layer_order, layer_parts
from ..options.checks import check_numbers
from .gates import HeadGates


class HeadImportance:
    """
    A score of each attention head of a model; the lowest are pruned first.

    Derived classes say how in `measure`. Scores are an array `(layers, heads of the largest layer)` of float64 on the
    CPU, NaN where a layer has fewer heads, and for heads that gates have closed.

    Attributes:
        needs_batches (`bool`): Whether scores depend on data.
    """

    needs_batches = True

    def __repr__(self) -> str:
        """The class and its settings, the same in each process."""
        settings = {name: value for name, value in vars(self).items() if name != "needs_batches"}
        return f"{type(self).__name__}({', '.join(f'{name}={_told(value)}' for name, value in settings.items())})"

    def scores(self, model: nn.Module, batches: Iterable[Mapping[str, Any]] = ()) -> Tensor:
        """
        The scores of a model's heads; model, its mode, its gradients and the state of the random numbers stay as they
        are.

        Args:
            model (`nn.Module`): A model with an encoder that [`~models.architecture.find_encoder`] knows.
            batches (`Iterable[Mapping]`): What the model is called with, on its device.

        Raises:
            ValueError: no batches although they are needed, or scores that are no numbers.
        """
        batches = list(batches)
        if self.needs_batches and not batches:
            raise ValueError(f"{type(self).__name__} measures heads on examples: give calibration batches.")
        modes = [(module, module.training) for module in model.modules()]
        devices = [model.device] if model.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            model.eval()
            try:
                rows = self.measure(model, batches)
            finally:
                for module, training in modes:
                    module.training = training
        closed = HeadGates.closed_on(model)
        self._check(rows, closed)
        scores = as_array(rows)
        for layer, shut in enumerate(closed):
            scores[layer, [*shut]] = torch.nan
        return scores

    def _check(self, rows: list[Tensor], closed: list[frozenset[int]]) -> None:
        for layer, (row, shut) in enumerate(zip(rows, closed, strict=True)):
            if not row[_are_open(row, shut)].isfinite().all():
                raise ValueError(
                    f"{type(self).__name__} gives no numbers for heads of layer {layer}: the model's weights or "
                    "outputs are not finite."
                )

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        """By layer, the scores `(heads,)`; the model is in evaluation mode."""
        raise NotImplementedError


class RandomImportance(HeadImportance):
    """Scores by chance, the same for the same seed: what any other has to beat."""

    needs_batches = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        return [torch.rand(parts.num_heads, generator=generator) for parts in layer_parts(model)]


class WeightNorm(HeadImportance):
    """
    Mean absolute weight of a head's query, key and value projections, added up.

    Equation 1 leaves open whether `Q`, `K`, `V` are weights or activations and what `j` counts; this is the mean over
    all entries of the head's slices of the three weight matrices, `head_dim` rows of the width of the encoder. By
    itself it cuts what lies below one threshold for all layers: the paper's baseline "global threshold".

    References:
        Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation",
        equation 1.
    """

    needs_batches = False

    @torch.no_grad()
    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return [
            sum(
                # A fused layer has all queries, then all keys, then all values.
                linear.weight.abs().double().unflatten(0, (-1, parts.num_heads, parts.head_dim)).mean((2, 3)).sum(0)
                for linear in parts.state_projections
            ).cpu()
            if parts.num_heads
            else torch.zeros(0)
            for parts in layer_parts(model)
        ]


class AttentionEntropy(HeadImportance):
    """
    Mean entropy of a head's attention, over all queries that are no padding and all examples, in nats. A high one, an
    even allocation, counts as important, as the paper's equation 4 has it.

    Attention is computed eagerly meanwhile. Equation 3 sums over `d_k`; rows of attention have as many entries as the
    text has tokens, which is what is summed over here.

    References:
        Yu et al., equations 2 and 3.
    """

    @torch.no_grad()
    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return mean_over_queries(model, batches, lambda maps: -torch.special.xlogy(maps, maps).sum(-1))


class AttentionPeak(HeadImportance):
    """
    Mean of the largest weight of a head's attention rows, over queries and examples: what a look at its attention maps
    shows first, a head that points somewhere. The paper's baseline "attention visualisation" is read so.

    References:
        Yu et al., table 4; Voita et al., "Analyzing Multi-Head Self-Attention" (ACL 2019), "confidence".
    """

    @torch.no_grad()
    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return mean_over_queries(model, batches, lambda maps: maps.amax(-1))


class GateGradient(HeadImportance):
    """
    Absolute gradient of the loss by a head's gate, the mean over batches: to first order, what the loss changes by if
    the head goes.

    References:
        Michel et al., "Are Sixteen Heads Really Better than One?" (NeurIPS 2019), equation 2.
    """

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        with HeadGates.found_on(model) or HeadGates(model) as gates, torch.enable_grad():
            before, sums = gates.values, None
            present = [each.clone().requires_grad_() for each in before if each is not None]
            factors = iter(present)
            gates.values = [None if each is None else next(factors) for each in before]
            try:
                for batch in batches:
                    loss = model(**batch).get("loss")
                    if loss is None:
                        raise ValueError("GateGradient needs batches with labels: the model gives no loss.")
                    gradients = torch.autograd.grad(loss, present)
                    found = [each.abs().double().cpu() / len(batches) for each in gradients]
                    sums = found if sums is None else [a + b for a, b in zip(sums, found, strict=True)]
            finally:
                gates.values = before
            found = iter(sums)
            return [torch.zeros(0) if each is None else next(found) for each in before]


class CombinedImportance(HeadImportance):
    """
    `alpha * weight norm + (1 - alpha) * entropy`, each normalised first, since they differ by orders of magnitude.

    Args:
        alpha (`float`, *optional*, defaults to 0.5): From 0, entropy alone, to 1, the norm alone.
        normalization (`Callable`, *optional*): [`min_max`] by default; [`z_score`] or [`raw`].
        by_layer (`bool`, *optional*, defaults to `False`): Normalise within each layer, not over all heads.

    References:
        Yu et al., equation 4.

    Raises:
        ValueError: `alpha` is not from 0 to 1.
    """

    def __init__(self, alpha: float = 0.5, normalization=None, by_layer: bool = False) -> None:
        check_numbers(alpha=alpha)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` weighs the norm against the entropy: it must be from 0 to 1, not {alpha}.")
        self.alpha, self.normalization, self.by_layer = alpha, normalization or min_max, by_layer
        self.needs_batches = alpha < 1

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        parts = [(self.alpha, WeightNorm()), (1 - self.alpha, AttentionEntropy())]
        closed, summed = HeadGates.closed_on(model), None
        for share, importance in parts:
            if not share:
                continue
            rows = [row.double() for row in importance.measure(model, batches)]
            importance._check(rows, closed)
            there = [_are_open(row, shut) for row, shut in zip(rows, closed, strict=True)]
            groups = zip(rows, there, strict=True) if self.by_layer else [(torch.cat(rows), torch.cat(there))]
            normal = torch.cat([share * self._normalized(values, counted) for values, counted in groups])
            summed = normal if summed is None else summed + normal
        return list(summed.split([len(row) for row in rows]))

    def _normalized(self, values: Tensor, counted: Tensor) -> Tensor:
        """Those that count, on a scale that they alone make; NaN for the others."""
        normal = torch.full_like(values, torch.nan)
        if counted.any():
            normal[counted] = self.normalization(values[counted])
        return normal


def _told(value: Any) -> str:
    """A setting in words; of an object that is no plain value its name or that of its class."""
    plain = value is None or isinstance(value, bool | int | float | str | list | tuple)
    return repr(value) if plain else getattr(value, "__qualname__", type(value).__qualname__)


def _are_open(row: Tensor, closed: frozenset[int]) -> Tensor:
    there = torch.ones(len(row), dtype=torch.bool)
    there[[*closed]] = False
    return there


def min_max(values: Tensor) -> Tensor:
    """The values on a scale from 0 to 1; all 0 if they are equal."""
    span = values.max() - values.min()
    return torch.zeros_like(values) if span == 0 else (values - values.min()) / span


def z_score(values: Tensor) -> Tensor:
    """The values with mean 0 and standard deviation 1; all 0 if they are equal."""
    centred = values - values.mean()
    deviation = centred.square().mean().sqrt()
    return torch.zeros_like(values) if deviation == 0 else centred / deviation


def raw(values: Tensor) -> Tensor:
    """The values as they are."""
    return values


def mean_over_queries(model: nn.Module, batches: list[Mapping[str, Any]], measure) -> list[Tensor]:
    """
    What `measure` gives for attention maps `(batch, heads, queries, keys)`, of shape `(batch, heads, queries)`, as the
    mean over queries that are no padding.
    """
    sums: list[Tensor] | None = None
    count = 0
    with eager_attention(model):
        for batch in batches:
            attentions = model(**batch, output_attentions=True).get("attentions")
            if not attentions:
                raise ValueError(
                    f"{type(model).__name__} returns no attention matrices, so that there is nothing to measure: "
                    "score heads by their weights (`alpha=1.0`, or `importance=WeightNorm()`)."
                )
            mask = batch.get("attention_mask")
            mask = attentions[0].new_ones(attentions[0].shape[::3]) if mask is None else mask
            # Summed in double: the same for other sizes of batches.
            rows = [
                # Padding that attends to nothing, beyond a local window, may have no number.
                measure(_at_least_single(maps)).double().where(mask[:, None] > 0, 0.0).sum((0, 2)).cpu()
                for maps in attentions
            ]
            sums = rows if sums is None else [a + b for a, b in zip(sums, rows, strict=True)]
            count += int(mask.sum(dtype=torch.float64))
    # Of layers that share their weights the mean.
    order = layer_order(model)
    found = [
        [row for row, layer in zip(sums, order, strict=True) if layer == place] for place in range(max(order) + 1)
    ]
    return [torch.stack(rows).mean(0) / max(count, 1) for rows in found]


def _at_least_single(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


@contextmanager
def eager_attention(model: nn.Module):
    """While inside, the encoder of a model computes attention so that its maps can be had."""
    encoder = find_encoder(model)
    before = encoder.config._attn_implementation
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        with suppress(AttributeError):
            encoder.set_attn_implementation(before)


def as_array(rows: list[Tensor]) -> Tensor:
    """Rows of different length as one array, NaN where they end."""
    widest = max((len(row) for row in rows), default=0)
    array = torch.full((len(rows), widest), torch.nan, dtype=torch.float64)
    for layer, row in enumerate(rows):
        array[layer, : len(row)] = row
    return array


__all__ = [
    "AttentionEntropy",
    "AttentionPeak",
    "CombinedImportance",
    "GateGradient",
    "HeadImportance",
    "RandomImportance",
    "WeightNorm",
    "min_max",
    "raw",
    "z_score",
]
