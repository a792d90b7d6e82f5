"""Unstructured pruning: sparse teachers whose lowest weights are set to 0."""

import copy
from collections.abc import Iterable, Mapping

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
    layers = _weights(teacher)
    weights = [weight for kind in layers for layer in kind for weight in layer]

    def score(gradients: tuple[Tensor, ...]) -> list[Tensor]:
        return [(each * weight.detach()).abs().float() for each, weight in zip(gradients, weights, strict=True)]

    with left_unchanged(teacher, student):
        for weight in weights:
            weight.requires_grad_()
        sums, about = sum_gradients(teacher, batches, student, temperature, lambda rows: weights, score)
    return KnowledgeableScores(*(_as_scores(each, layers) for each in sums), about={"weights": True, **about})


@checked
def zero_weights(teacher: nn.Module, scores: UnitScores, sparsity: float) -> nn.Module:
    """Return a copy of a teacher whose lowest weights by [`measure_weight_scores`] are 0: a share of `sparsity` of the
    attention weights over all layers, and of the feed-forward weights. For the errors, see [`check_weights`]."""
    check_weights(teacher, scores, sparsity)
    sparse = copy.deepcopy(teacher)
    for rows, array in zip(_weights(sparse), (scores.heads, scores.neurons), strict=True):
        counts = [sum(each.numel() for each in row) for row in rows]
        lowest = torch.zeros(array.numel(), dtype=torch.bool)
        lowest[array.flatten().nan_to_num(torch.inf).argsort(stable=True)[: round(sparsity * sum(counts))]] = True
        for row, chosen, count in zip(rows, lowest.view_as(array), counts, strict=True):
            for weight, each in zip(row, chosen[:count].split([one.numel() for one in row]), strict=True):
                weight.data.masked_fill_(each.view_as(weight).to(weight.device), 0.0)
    return sparse


def check_weights(teacher: nn.Module, scores: UnitScores | None, sparsity: float) -> None:
    """Raise `UsageError` if the sparsity is not in `[0, 1)` or leaves no weight, or the scores do not fit."""
    check_sparsity(sparsity)
    arrays = (None, None) if scores is None else (scores.heads, scores.neurons)
    for name, array, layers in zip(("attention", "feed-forward"), arrays, _weights(teacher), strict=True):
        counts = [sum(each.numel() for each in layer) for layer in layers]
        if array is not None and array.isfinite().sum(1).tolist() != counts:
            raise UsageError(f"The scores do not match the teacher's {name} weights. Measure scores of this teacher.")
        gone = round(sparsity * sum(counts))
        if gone and gone == sum(counts):
            raise UsageError(f"A sparsity of {sparsity} would zero all {name} weights. Choose a lower sparsity.")


def random_weight_scores(teacher: nn.Module, seed: int = 0) -> UnitScores:
    """Return random scores for the weights of a teacher, in the order of [`measure_weight_scores`]."""
    generator, layers = torch.Generator().manual_seed(seed), _weights(teacher)
    drawn = ([], [])
    for rows in zip(*layers, strict=True):
        for kind, row in zip(drawn, rows, strict=True):
            kind.extend(torch.rand(one.shape, generator=generator) for one in row)
    return _as_scores([*drawn[0], *drawn[1]], layers)


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
    sparse, generator = copy.deepcopy(teacher), torch.Generator().manual_seed(seed)
    for weight in (weight for layer in zip(*_weights(sparse), strict=True) for kind in layer for weight in kind):
        chosen = torch.randperm(weight.numel(), generator=generator)[: round(sparsity * weight.numel())]
        weight.data.view(-1)[chosen.to(weight.device)] = 0.0
    return sparse


def _weights(model: nn.Module) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """Return the attention weights and the feed-forward weights of each layer."""
    parts = layer_parts(model)
    attention = [[*each.head_projections, each.attention_output] for each in parts]
    kinds = (attention, [[*each.neuron_projections, each.output] for each in parts])
    return tuple([[each.weight for each in row if each is not None] for row in kind] for kind in kinds)


def _as_scores(sums: list[Tensor], layers: tuple[list[list[Tensor]], list[list[Tensor]]]) -> UnitScores:
    return scores_of_layers(sums, [[len(layer) for layer in kind] for kind in layers])
