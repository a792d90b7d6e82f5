"""Importance of attention heads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

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
        settings = (f"{name}={value!r}" for name, value in vars(self).items() if name != "needs_batches")
        return f"{type(self).__name__}({', '.join(settings)})"

    @torch.no_grad()
    def scores(self, model: nn.Module, batches: Iterable[Mapping[str, Any]] = ()) -> Tensor:
        """
        The scores of a model's heads; model, its mode, its gradients and the state of the random numbers stay as they
        are.

        Args:
            model (`nn.Module`): A model with an encoder that [`~models.architecture.find_encoder`] knows.
            batches (`Iterable[Mapping]`): Inputs of the model, on its device.

        Raises:
            ValueError: no batches although they are needed, or scores that are no numbers.
        """
        batches = list(batches)
        if self.needs_batches and not batches:
            raise ValueError(f"{type(self).__name__} measures heads on examples: give calibration batches.")
        with left_unchanged(model):
            rows = self.measure(model, batches)
        return pad_sequence(self._open(model, rows), batch_first=True, padding_value=torch.nan)

    def _open(self, model: nn.Module, rows: list[Tensor]) -> list[Tensor]:
        """Return the scores with NaN for heads that gates have closed."""
        found = []
        for layer, (row, closed) in enumerate(zip(rows, HeadGates.closed_on(model), strict=True)):
            row = row.double()
            is_open = torch.tensor([head not in closed for head in range(len(row))], dtype=torch.bool)
            if not row[is_open].isfinite().all():
                raise ValueError(
                    f"{type(self).__name__} gives no numbers for heads of layer {layer}: the model's weights or "
                    "outputs are not finite."
                )
            found.append(row.where(is_open, torch.nan))
        return found

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

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return mean_over_queries(model, batches, lambda maps: -torch.special.xlogy(maps, maps).sum(-1))


class AttentionPeak(HeadImportance):
    """
    Mean of the largest weight of a head's attention rows, over queries and examples: what a look at its attention maps
    shows first, a head that points somewhere. The paper's baseline "attention visualisation" is read so.

    References:
        Yu et al., table 4; Voita et al., "Analyzing Multi-Head Self-Attention" (ACL 2019), "confidence".
    """

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
        there = HeadGates.found_on(model)
        with nullcontext(there) if there else HeadGates(model) as gates, torch.enable_grad():
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
    `alpha * weight norm + (1 - alpha) * entropy`, each scaled from 0 to 1 over all open heads first, since they differ
    by orders of magnitude.

    Args:
        alpha (`float`, *optional*, defaults to 0.5): From 0, entropy alone, to 1, the norm alone.

    References:
        Yu et al., equation 4.

    Raises:
        ValueError: `alpha` is not from 0 to 1.
    """

    def __init__(self, alpha: float = 0.5) -> None:
        check_numbers(alpha=alpha)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` weighs the norm against the entropy: it must be from 0 to 1, not {alpha}.")
        self.alpha, self.needs_batches = alpha, alpha < 1

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        summed = 0.0
        for share, importance in ((self.alpha, WeightNorm()), (1 - self.alpha, AttentionEntropy())):
            if share:
                rows = importance._open(model, importance.measure(model, batches))
                summed = summed + share * min_max(torch.cat(rows))
        return list(summed.split([len(row) for row in rows]))


def min_max(values: Tensor) -> Tensor:
    """The values on a scale from 0 to 1; all 0 if they are equal. NaN stays, and does not count."""
    counted = values[values.isfinite()]
    if not len(counted):
        return values
    low, high = counted.aminmax()
    return (values - low) / (high - low if high > low else 1.0)


def mean_over_queries(
    model: nn.Module, batches: list[Mapping[str, Any]], measure: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """Return means, over queries that are no padding, of what `measure` makes of `(batch, heads, queries, keys)`."""
    sums, counts = defaultdict(float), defaultdict(int)
    with eager_attention(model):
        for batch in batches:
            for layer, (maps, mask) in enumerate(_attentions(model, batch)):
                values = measure(maps.to(torch.promote_types(maps.dtype, torch.float32))).double()
                # Padding that attends to nothing, beyond a local window, may have no number. Summed in double: the
                # same for other sizes of batches.
                sums[layer] += values.where(mask[:, None] > 0, 0.0).sum((0, 2)).cpu()
                counts[layer] += int(mask.sum(dtype=torch.float64))
    # Of layers that share their weights the mean.
    shared = defaultdict(list)
    for layer, place in enumerate(layer_order(model)):
        shared[place].append(sums[layer] / max(counts[layer], 1))
    return [torch.stack(shared[place]).mean(0) for place in sorted(shared)]


def _attentions(model: nn.Module, batch: Mapping[str, Any]) -> list[tuple[Tensor, Tensor]]:
    """Attention matrices `(batch, heads, queries, keys)` of each layer, with the mask `(batch, queries)`."""
    outputs, mask, labels = model(**batch, output_attentions=True), batch.get("attention_mask"), batch.get("labels")
    masks = {"attentions": mask}
    if find_encoder(model).config.is_encoder_decoder:
        decoder_mask = batch.get("decoder_attention_mask") if labels is None else labels != -100
        masks = {"encoder_attentions": mask, "decoder_attentions": decoder_mask, "cross_attentions": decoder_mask}
    found = []
    for name, mask in masks.items():
        attentions = outputs.get(name)
        if not attentions:
            raise ValueError(
                f"{type(model).__name__} returns no attention matrices, so that there is nothing to measure: "
                "score heads by their weights (`alpha=1.0`, or `importance=WeightNorm()`)."
            )
        mask = attentions[0].new_ones(attentions[0].shape[:3:2]) if mask is None else mask
        found += [(maps, mask) for maps in attentions]
    return found


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


@contextmanager
def left_unchanged(*models: nn.Module | None) -> Iterator[None]:
    """While inside, models are in evaluation mode and their weights frozen, and random numbers are others."""
    models = [model for model in models if model is not None]
    modes = [(module, module.training) for model in models for module in model.modules()]
    frozen = [(parameter, parameter.requires_grad) for model in models for parameter in model.parameters()]
    with torch.random.fork_rng({model.device for model in models if model.device.type == "cuda"}):
        try:
            for model in models:
                model.eval().requires_grad_(False)
            yield
        finally:
            for module, training in modes:
                module.training = training
            for parameter, requires_grad in frozen:
                parameter.requires_grad_(requires_grad)
