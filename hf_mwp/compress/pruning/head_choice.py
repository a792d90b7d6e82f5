"""Functions that choose the heads to prune by their scores."""

import math
from collections.abc import Iterable, Sequence

from torch import Tensor

from hf_mwp.utils.checked_types import checked


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

    Returns:
        `dict[int, list[int]]`: heads to prune in each layer, in ascending order. Layers that keep all heads are left
        out. Among equal scores, the lower layer is pruned first, then the lower index.

    Raises:
        ValueError: `ratio` is outside `[0, 1)`, or needs more heads than `min_heads_per_layer` allows.

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
    heads_left = scored.sum(1).tolist()
    for layer, heads in (gone or {}).items():
        for head in heads:
            pruned.add((layer, head))
            heads_left[layer] -= int(scored[layer, head])
    # Add the lowest scores of all layers, unless a layer is down to its minimum.
    order = sorted((scores[layer, head].item(), layer, head) for layer, head in scored.nonzero().tolist())
    for _, layer, head in order:
        if len(pruned) >= num_pruned:
            break
        if (layer, head) not in pruned and heads_left[layer] > min_heads_per_layer:
            pruned.add((layer, head))
            heads_left[layer] -= 1
    if len(pruned) < num_pruned:
        raise ValueError(
            f"{num_pruned} heads must be pruned, but only {len(pruned)} can be if each layer keeps "
            f"{min_heads_per_layer} of its heads. Use a lower ratio or `min_heads_per_layer`."
        )
    return heads_by_layer(pruned)


def heads_by_layer(pairs: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    """Return pairs of layer and head as ascending lists of heads by layer."""
    heads = {}
    for layer, head in sorted(pairs):
        heads.setdefault(layer, []).append(head)
    return heads
