"""Functions that choose the heads to prune by their scores."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.utils.checked_types import checked

from .head_bundles import HeadBundles


def whole_heads(ratio: float, total: int) -> int:
    """Return a share of `total` heads, rounded down (Algorithm 1, line 5)."""
    # 0.3 * 10 is a little less than 3.
    return math.floor(ratio * total + 1e-9)


@checked
def choose_heads(
    scores: Tensor,
    ratio: float,
    min_heads_per_layer: int = 1,
    total: int | None = None,
    gone: dict[int, list[int]] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    unit: str = "group",
    uniform: bool = False,
) -> dict[int, list[int]]:
    """
    Choose the heads with the lowest scores over all layers.

    Args:
        scores (`Tensor` of shape `(layers, heads)`):
            Scores from [`HeadImportance.scores`]; NaN for heads that are pruned or closed by a gate.
        ratio (`float`): Share of the heads to prune, rounded down to whole heads (Algorithm 1, line 5).
        min_heads_per_layer (`int`, *optional*, defaults to 1): Minimum number of heads that each layer keeps.
        total (`int`, *optional*): Number of heads that `ratio` refers to. Defaults to the number of scores.
        gone (`dict[int, list[int]]`, *optional*): Heads chosen earlier. They are part of the result and of its number.
        groups (`Sequence[Sequence[int]]`, *optional*):
            Key-value group of each head in each layer, `head_groups(model)`. Models with grouped queries need it, as
            their heads can only be pruned in bundles. The number of heads is rounded down to whole bundles.
        unit (`str`, *optional*, defaults to `"group"`):
            With `groups`, `"group"` prunes a key-value head with all its queries, and `"query"` one query of each
            key-value head of a layer, the one with the lowest score. Bundles are ranked by their mean scores.
        uniform (`bool`, *optional*, defaults to `False`):
            Whether to prune equally many heads of each layer, those with its lowest scores, so that
            [`export_dense`] can write a smaller model of Transformers' own class.

    Returns:
        `dict[int, list[int]]`: heads to prune in each layer, in ascending order. Layers that keep all heads are left
        out. Among equal scores, the lower layer is pruned first, then the lower index.

    Raises:
        ValueError: `ratio` is outside `[0, 1)`, or needs more heads than `min_heads_per_layer` allows. `unit` does not
            exist. With `uniform`: layers have different numbers of heads.

    References: Yu et al. (see [`HeadPruningCallback`]), Algorithm 1.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"The ratio of heads to prune must be at least 0 and below 1, not {ratio}.")
    scored = scores.isfinite()
    if total is None:
        total = int(scored.sum())
    num_pruned = whole_heads(ratio, total)
    # Heads of earlier choices stay pruned and count towards the number.
    pruned = set()
    num_pruned_of = [0] * len(scores)
    heads_left = scored.sum(1).tolist()
    open_scores = scores.clone()
    for layer, heads in (gone or {}).items():
        for head in heads:
            pruned.add((layer, head))
            num_pruned_of[layer] += 1
            heads_left[layer] -= int(scored[layer, head])
            open_scores[layer, head] = torch.nan
    limits = [num_pruned] * len(scores)
    if uniform:
        _check_equal_layers(heads_left, num_pruned_of)
        num_pruned = num_pruned // len(scores) * len(scores)
        limits = [num_pruned // len(scores)] * len(scores)
    bundles = HeadBundles.of(open_scores, groups, unit)
    # Add the lowest scores of all layers, unless a layer is down to its minimum.
    order = []
    for layer, bundle in bundles.scores.isfinite().nonzero().tolist():
        order.append((bundles.scores[layer, bundle].item(), layer, bundle))
    blocked_sizes = []
    for _, layer, bundle in sorted(order):
        heads = bundles.heads[layer][bundle]
        if heads_left[layer] - len(heads) < min_heads_per_layer:
            blocked_sizes.append(len(heads))
        elif len(pruned) + len(heads) <= num_pruned and num_pruned_of[layer] + len(heads) <= limits[layer]:
            pruned.update((layer, head) for head in heads)
            num_pruned_of[layer] += len(heads)
            heads_left[layer] -= len(heads)
    num_missing = num_pruned - len(pruned)
    # Less than a bundle may be missing, in each layer if they are pruned alike.
    if uniform:
        num_missing = max(limits) - min(num_pruned_of)
    if blocked_sizes and num_missing >= min(blocked_sizes):
        hint = ""
        if bundles.size > 1:
            hint = f" Heads are pruned {bundles.size} at a time (`unit={unit!r}`); the other unit may allow more."
        raise ValueError(
            f"{num_pruned} heads must be pruned, but only {len(pruned)} can be if each layer keeps "
            f"{min_heads_per_layer} of its heads. Use a lower ratio or `min_heads_per_layer`.{hint}"
        )
    return heads_by_layer(pruned)


def check_ratio(scores: Tensor, ratio: float, **options: Any) -> None:
    """Raise the errors of [`choose_heads`], whose options these are, and `ValueError` if a ratio above 0 is less than
    the heads that are pruned together, so that no head would be pruned."""
    heads = choose_heads(scores, ratio, **options)
    if heads or not ratio:
        return
    groups = options.get("groups")
    unit = options.get("unit", "group")
    uniform = options.get("uniform", False)
    if groups is None:
        groups = [range(scores.shape[1])] * len(scores)
    fewest = fewest_heads(groups, unit, uniform)
    total = options.get("total") or int(scores.isfinite().sum())
    if fewest > 1:
        least_ratio = math.ceil(100 * fewest / total) / 100
        raise ValueError(
            f"A ratio of {ratio} is less than {fewest} of the {total} heads, the fewest that can be pruned at once "
            f"with unit={unit!r} and uniform={uniform}. Use a ratio of at least {least_ratio}."
        )


def fewest_heads(groups: Sequence[Sequence[int]], unit: str = "group", uniform: bool = False) -> int:
    """Return the fewest heads that [`choose_heads`] can prune at once: a bundle, with `uniform` one of each layer."""
    scores = pad_sequence([torch.zeros(len(layer_groups)) for layer_groups in groups], True, torch.nan)
    size = HeadBundles.of(scores, groups, unit).size
    return size * len(groups) if uniform else size


def _check_equal_layers(heads_left: list[int], num_pruned: list[int]) -> None:
    """Raise `ValueError` if layers had different numbers of heads before any was pruned."""
    num_heads = [num_left + num_gone for num_left, num_gone in zip(heads_left, num_pruned, strict=True)]
    if len(set(num_heads)) > 1:
        raise ValueError(
            f"The layers have {num_heads} heads, of which equally many cannot remain. Use `uniform=False`."
        )


def heads_by_layer(pairs: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    """Return pairs of layer and head as ascending lists of heads by layer."""
    heads = {}
    for layer, head in sorted(pairs):
        heads.setdefault(layer, []).append(head)
    return heads
