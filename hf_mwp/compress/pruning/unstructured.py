"""Unstructured pruning: sparse teachers whose lowest weights are set to 0."""

import copy
from collections.abc import Iterable, Mapping
from itertools import chain

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .gate_gradients import scores_of_layers, sum_gradients
from .head_importance import left_unchanged
from .knowledgeable_scores import KnowledgeableScores, UnitScores
from .removed_units import check_sparsity


@checked
def measure_weight_scores(
    teacher: nn.Module, batches: Iterable[Mapping], student: nn.Module | None = None, *, temperature: float = 2.0
) -> KnowledgeableScores:
    """
    Measure scores of single weights in the encoder's linear layers, with the arguments of [`measure_scores`]: absolute
    values of weight times gradient of a batch's mean loss, summed over batches (Yang et al., section 4.4, table 6). In
    the result, in fp32, a row of `heads` has a layer's query, key, value and attention output weights, in this order;
    a row of `neurons` its feed-forward weights.
    """
    attention, feed_forward = _weights(teacher)
    weights = list(chain(*attention, *feed_forward))

    def score(gradients: tuple[Tensor, ...]) -> list[Tensor]:
        scores = []
        for gradient, weight in zip(gradients, weights, strict=True):
            scores.append((gradient * weight.detach()).abs().float())
        return scores

    with left_unchanged(teacher, student):
        for weight in weights:
            weight.requires_grad_()
        sums, settings = sum_gradients(teacher, batches, student, temperature, lambda rows: weights, score)
    scores = [_as_scores(loss_sums, attention, feed_forward) for loss_sums in sums]
    return KnowledgeableScores(*scores, about={"weights": True, **settings})


@checked
def zero_weights(teacher: nn.Module, scores: UnitScores, sparsity: float) -> nn.Module:
    """Return a copy of a teacher whose lowest weights by [`measure_weight_scores`] are 0: a share of `sparsity` of the
    attention weights over all layers, and of the feed-forward weights. For the errors, see [`check_weights`]."""
    check_weights(teacher, scores, sparsity)
    sparse = copy.deepcopy(teacher)
    for layers, array in zip(_weights(sparse), (scores.heads, scores.neurons), strict=True):
        num_zeros = round(sparsity * sum(map(_num_weights, layers)))
        lowest = array.flatten().nan_to_num(torch.inf).argsort(stable=True)[:num_zeros]
        mask = torch.zeros(array.numel(), dtype=torch.bool)
        mask[lowest] = True
        # A row of the scores has the weights of a layer, one after the other.
        for weights, layer_mask in zip(layers, mask.view_as(array), strict=True):
            start = 0
            for weight in weights:
                weight_mask = layer_mask[start : start + weight.numel()].view_as(weight)
                weight.data.masked_fill_(weight_mask.to(weight.device), 0.0)
                start += weight.numel()
    return sparse


def check_weights(teacher: nn.Module, scores: UnitScores | None, sparsity: float) -> None:
    """Raise `UsageError` if the sparsity is not in `[0, 1)` or leaves no weight, or the scores do not fit."""
    check_sparsity(sparsity)
    arrays = (None, None) if scores is None else (scores.heads, scores.neurons)
    for name, array, layers in zip(("attention", "feed-forward"), arrays, _weights(teacher), strict=True):
        num_weights = [_num_weights(weights) for weights in layers]
        if array is not None and array.isfinite().sum(1).tolist() != num_weights:
            raise UsageError(f"The scores do not match the teacher's {name} weights. Measure scores of this teacher.")
        total = sum(num_weights)
        if total and round(sparsity * total) == total:
            raise UsageError(f"A sparsity of {sparsity} would zero all {name} weights. Choose a lower sparsity.")


def random_weight_scores(teacher: nn.Module, seed: int = 0) -> UnitScores:
    """Return random scores for the weights of a teacher, in the order of [`measure_weight_scores`]."""
    generator = torch.Generator().manual_seed(seed)
    attention, feed_forward = _weights(teacher)
    attention_scores = []
    feed_forward_scores = []
    for attention_weights, feed_forward_weights in zip(attention, feed_forward, strict=True):
        attention_scores += [torch.rand(weight.shape, generator=generator) for weight in attention_weights]
        feed_forward_scores += [torch.rand(weight.shape, generator=generator) for weight in feed_forward_weights]
    return _as_scores(attention_scores + feed_forward_scores, attention, feed_forward)


class WeightSparsifier:
    """Pruning granularity like [`UnitSparsifier`], but for single weights (Yang et al., table 6)."""

    random = staticmethod(random_weight_scores)
    check = staticmethod(check_weights)
    sparse = staticmethod(zero_weights)

    def measure(self, teacher, batches, student, temperature, per_example):
        return measure_weight_scores(teacher, batches, student, temperature=temperature)


@checked
def zero_random_weights(teacher: nn.Module, sparsity: float, seed: int = 0) -> nn.Module:
    """Return a copy with a random share of each matrix in the encoder's layers set to 0 (Yang et al., section 1)."""
    check_sparsity(sparsity)
    sparse = copy.deepcopy(teacher)
    generator = torch.Generator().manual_seed(seed)
    for attention_weights, feed_forward_weights in zip(*_weights(sparse), strict=True):
        for weight in attention_weights + feed_forward_weights:
            positions = torch.randperm(weight.numel(), generator=generator)[: round(sparsity * weight.numel())]
            weight.data.view(-1)[positions.to(weight.device)] = 0.0
    return sparse


def _weights(model: nn.Module) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """Return the attention weights and the feed-forward weights of each layer."""
    attention = []
    feed_forward = []
    for linears in layer_parts(model):
        attention.append(_weights_of(*linears.head_projections, linears.attention_output))
        feed_forward.append(_weights_of(*linears.neuron_projections, linears.output))
    return attention, feed_forward


def _weights_of(*linears: nn.Linear | None) -> list[Tensor]:
    return [linear.weight for linear in linears if linear is not None]


def _num_weights(weights: list[Tensor]) -> int:
    return sum(weight.numel() for weight in weights)


def _as_scores(sums: list[Tensor], *layers: list[list[Tensor]]) -> UnitScores:
    return scores_of_layers(sums, [list(map(len, stack)) for stack in layers])
