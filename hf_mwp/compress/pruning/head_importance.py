"""Importance scores of attention heads."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.losses.precision import at_least_fp32
from hf_mwp.compress.models.architecture import find_architecture, find_encoder, layer_order, layer_parts
from hf_mwp.compress.models.batch_inputs import find_token_mask
from hf_mwp.compress.models.layer_linears import output_dim
from hf_mwp.compress.models.model_outputs import set_attention
from hf_mwp.utils.checked_types import checked

from .gates import HeadGates


class HeadImportance:
    """
    Base class of importance scores of attention heads; the heads with the lowest scores are pruned first.

    Derived classes implement `measure`. Scores have the shape `(layers, heads of the largest layer)`, as float64 on
    the CPU, with NaN if a layer has fewer heads and for heads closed by gates.

    Attributes:
        needs_batches (`bool`): Whether scores depend on data.
    """

    needs_batches = True

    def __repr__(self) -> str:
        """Return the class and its settings, the same in each process."""
        settings = [f"{name}={value!r}" for name, value in vars(self).items() if name != "needs_batches"]
        return f"{type(self).__name__}({', '.join(settings)})"

    @torch.no_grad()
    def scores(self, model: nn.Module, batches: Iterable[Mapping[str, Any]] = ()) -> Tensor:
        """Return the scores of the heads of a model with a supported encoder ([`~models.architecture.find_encoder`]).
        `batches` are inputs of the model, on its device. The model, its mode and gradients, and the random state are
        not changed. Raises `ValueError` if batches are needed but missing, or scores are not finite."""
        batches = list(batches)
        if self.needs_batches and not batches:
            raise ValueError(f"{type(self).__name__} needs examples. Pass calibration batches (`batches`).")
        with left_unchanged(model):
            rows = self.measure(model, batches)
        return pad_sequence(self._open(model, rows), batch_first=True, padding_value=torch.nan)

    def _open(self, model: nn.Module, rows: list[Tensor]) -> list[Tensor]:
        """Return the scores with NaN for heads closed by gates. Raises `ValueError` if others are not finite."""
        scores = []
        for layer, (row, closed) in enumerate(zip(rows, HeadGates.closed_on(model), strict=True)):
            is_open = torch.ones(len(row), dtype=torch.bool)
            is_open[list(closed)] = False
            row = row.double()
            if not row[is_open].isfinite().all():
                raise ValueError(f"{type(self).__name__} returns NaN or infinite scores for heads of layer {layer}.")
            scores.append(row.where(is_open, torch.nan))
        return scores

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        """Return the scores `(heads,)` of each layer; called with the model in evaluation mode."""
        raise NotImplementedError


class RandomImportance(HeadImportance):
    """Random scores from a seed, as a baseline for other scores."""

    needs_batches = False

    @checked
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        return [torch.rand(linears.num_heads, generator=generator) for linears in layer_parts(model)]


class WeightNorm(HeadImportance):
    """
    Sum of the mean absolute weights of a head's query, key and value projections.

    Equation 1 does not say whether `Q`, `K`, `V` are weights or activations, nor what `j` counts. This implementation
    averages over all entries of the head's `head_dim` rows in each weight matrix. Heads of one key-value group share
    the rows of their key and value. Pruning only by this score, over all layers together, is the paper's baseline
    "global threshold".

    References: Yu et al. (see [`HeadPruningCallback`]), equation 1.
    """

    needs_batches = False

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        rows = []
        for linears in layer_parts(model):
            if not linears.num_heads:
                rows.append(torch.zeros(0))
                continue
            # Mean of each output's weights, by the linear layer. The host waits for the device once for each layer.
            output_means = {}
            for linear in linears.state_projections:
                output_means[linear] = linear.weight.abs().double().mean(1 - output_dim(linear))
            means = torch.cat(list(output_means.values())).cpu().split(list(map(len, output_means.values())))
            output_means = dict(zip(output_means, means, strict=True))
            norms = []
            for head in range(linears.num_heads):
                norm = torch.zeros((), dtype=torch.float64)
                for linear, head_rows in linears.state_rows([head]):
                    # A fused layer has the rows of a query, a key and a value.
                    num_projections = len(head_rows) // linears.head_dim
                    norm += output_means[linear][head_rows].mean() * num_projections
                norms.append(norm)
            rows.append(torch.stack(norms))
        return rows


class AttentionEntropy(HeadImportance):
    """
    Mean entropy of a head's attention in nats, over all examples and all queries that are not padding. A high entropy
    (evenly spread attention) counts as important, as in the paper's equation 4.

    Scores are computed with eager attention. Equation 3 sums over `d_k`, but rows of attention have an entry for each
    token, so this implementation sums over tokens.

    References: Yu et al. (see [`HeadPruningCallback`]), equations 2 and 3.
    """

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return mean_over_queries(model, batches, lambda maps: -torch.special.xlogy(maps, maps).sum(-1))


class AttentionPeak(HeadImportance):
    """
    Largest attention weight of each query, averaged over queries and examples. It is high for heads that attend to
    single tokens. This is our interpretation of the baseline "attention visualisation" of Yu et al., table 4.

    References: Voita et al., "Analyzing Multi-Head Self-Attention" (ACL 2019), "confidence".
    """

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        return mean_over_queries(model, batches, lambda maps: maps.amax(-1))


class GateGradient(HeadImportance):
    """
    Absolute gradient of the loss with respect to a head's gate, averaged over batches: to first order, the change of
    the loss when the head is removed.

    References: Michel et al., "Are Sixteen Heads Really Better than One?" (NeurIPS 2019), equation 2.
    """

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        existing = HeadGates.found_on(model)
        gates_context = nullcontext(existing) if existing else HeadGates(model)
        with gates_context as gates, torch.enable_grad():
            before = gates.values
            factors = [values.clone().requires_grad_() for values in before]
            gates.values = factors
            rows = [torch.zeros(values.shape, dtype=torch.float64) for values in before]
            try:
                for batch in batches:
                    loss = model(**batch).get("loss")
                    if loss is None:
                        raise ValueError("GateGradient needs the loss of the model. Pass batches with labels.")
                    gradients = torch.autograd.grad(loss, factors, materialize_grads=True)
                    for row, gradient in zip(rows, gradients, strict=True):
                        row += gradient.abs().double().cpu() / len(batches)
            finally:
                gates.values = before
            return rows


class CombinedImportance(HeadImportance):
    """
    `alpha * weight norm + (1 - alpha) * entropy`. Each score is first scaled to the range 0 to 1 over all open heads,
    because they differ by orders of magnitude.

    Args:
        alpha (`float`, *optional*, defaults to 0.5): Weight of the norm; 0 uses only entropy, 1 only the norm.

    References: Yu et al. (see [`HeadPruningCallback`]), equation 4.
    """

    @checked
    def __init__(self, alpha: float = 0.5) -> None:
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` must be in the range 0 to 1, got {alpha}.")
        self.alpha = alpha
        self.needs_batches = alpha < 1

    def measure(self, model: nn.Module, batches: list[Mapping[str, Any]]) -> list[Tensor]:
        total = 0.0
        for weight, importance in ((self.alpha, WeightNorm()), (1 - self.alpha, AttentionEntropy())):
            if weight:
                rows = importance._open(model, importance.measure(model, batches))
                total = total + weight * min_max(torch.cat(rows))
        return list(total.split(list(map(len, rows))))


def min_max(values: Tensor) -> Tensor:
    """Scale values to the range 0 to 1, or to 0 if all are equal. NaN is ignored and kept."""
    low, high = values[values.isfinite()].aminmax()
    if high > low:
        return (values - low) / (high - low)
    return values - low


def mean_over_queries(model: nn.Module, batches: list[Mapping[str, Any]], measure: Callable) -> list[Tensor]:
    """Return the means of `measure` of attention `(batch, heads, queries, keys)` over queries without padding."""
    sums = defaultdict(float)
    num_queries = defaultdict(int)
    with eager_attention(model):
        for batch in batches:
            for layer, (maps, mask) in enumerate(_attentions(model, batch)):
                values = measure(at_least_fp32(maps)).double()
                # Padding with all keys masked may be NaN. Sums in float64 do not depend on the batch size.
                sums[layer] += values.where(mask[:, None] > 0, 0.0).sum((0, 2)).cpu()
                num_queries[layer] += int(mask.sum(dtype=torch.float64))
    # Average over layers that share their weights.
    means = defaultdict(list)
    for layer, weights_index in enumerate(layer_order(model)):
        means[weights_index].append(sums[layer] / max(num_queries[layer], 1))
    return [torch.stack(means[index]).mean(0) for index in sorted(means)]


def _attentions(model: nn.Module, batch: Mapping[str, Any]) -> list[tuple[Tensor, Tensor]]:
    """Return the attention matrices `(batch, heads, queries, keys)` and masks `(batch, queries)` of each layer."""
    outputs = model(**batch, output_attentions=True)
    architecture = find_architecture(find_encoder(model).config)
    labels = batch.get("labels")
    mask = find_token_mask(batch)
    maps_and_masks = []
    for stack in (architecture, *architecture.others):
        attentions = outputs.get(stack.attentions)
        if not attentions:
            raise ValueError(
                f"{type(model).__name__} returns no attention matrices. Score heads by their weights "
                "(`alpha=1.0`, or `importance=WeightNorm()`)."
            )
        if mask is None:
            mask = attentions[0].new_ones(attentions[0].shape[:3:2])
        maps_and_masks += [(maps, mask) for maps in attentions]
        # The decoder's self- and cross-attention have a query for each label.
        if labels is None or labels.dim() < 2:
            mask = batch.get("decoder_attention_mask")
        else:
            mask = labels != -100
    return maps_and_masks


@contextmanager
def eager_attention(model: nn.Module):
    """Context manager in which the encoder of a model uses eager attention, which returns attention maps."""
    encoder = find_encoder(model)
    before = encoder.config._attn_implementation
    set_attention(encoder, "eager")
    try:
        yield
    finally:
        with suppress(AttributeError):
            set_attention(encoder, before)


@contextmanager
def left_unchanged(*models: nn.Module | None) -> Iterator[None]:
    """Context manager that evaluates models with frozen weights, and restores modes and the random state."""
    models = [model for model in models if model is not None]
    modes = {}
    requires_grad = {}
    for model in models:
        for module in model.modules():
            modes[module] = module.training
        for parameter in model.parameters():
            requires_grad[parameter] = parameter.requires_grad
    with torch.random.fork_rng({model.device for model in models if model.device.type == "cuda"}):
        try:
            for model in models:
                model.eval().requires_grad_(False)
            yield
        finally:
            for module, training in modes.items():
                module.training = training
            for parameter, is_trained in requires_grad.items():
                parameter.requires_grad_(is_trained)
