"""Choice of the heads to prune by their scores."""

from __future__ import annotations

import math

from torch import Tensor


def whole_heads(ratio: float, total: int) -> int:
    """A share of heads, rounded down (Algorithm 1, line 5)."""
    # 0.3 * 10 is a little less than 3.
    return math.floor(ratio * total + 1e-9)


def choose_heads(
    scores: Tensor,
    ratio: float,
    min_heads_per_layer: int = 1,
    total: int | None = None,
    gone: dict[int, list[int]] | None = None,
) -> dict[int, list[int]]:
    """
    The heads with the lowest scores over all layers.

    Args:
        scores (`Tensor` of shape `(layers, heads)`):
            As [`HeadImportance.scores`] gives them, NaN where no head is, or none that is open.
        ratio (`float`): Share of the heads to cut, rounded down to whole heads (Algorithm 1, line 5).
        min_heads_per_layer (`int`, *optional*, defaults to 1): Heads that each layer keeps, as far as it has them.
        total (`int`, *optional*): Heads that the ratio is of; by default those with scores.
        gone (`dict[int, list[int]]`, *optional*): Heads that are chosen in any case, those of an earlier choice.

    Returns:
        `dict[int, list[int]]`: by layer, heads in ascending order; layers that keep all are left out. Ties remove
        the head of the lower layer first, then that of the lower index.

    Raises:
        ValueError: a ratio outside `[0, 1)`, or more heads than the floor leaves.

    References:
        Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation",
        Algorithm 1.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"The ratio of heads to prune must be at least 0 and below 1, not {ratio}.")
    there = scores.isfinite()
    wanted = whole_heads(ratio, int(there.sum()) if total is None else total)
    # Heads of earlier choices stay chosen, and count.
    chosen = {(layer, head) for layer, heads in (gone or {}).items() for head in heads}
    left = there.sum(1).tolist()
    for layer, head in chosen:
        left[layer] -= int(there[layer, head])
    # Then the lowest scores of all layers, as long as a layer has more heads than it keeps.
    order = sorted((scores[layer, head].item(), layer, head) for layer, head in there.nonzero().tolist())
    for _, layer, head in order:
        if len(chosen) >= wanted:
            break
        if (layer, head) not in chosen and left[layer] > min_heads_per_layer:
            chosen.add((layer, head))
            left[layer] -= 1
    if len(chosen) < wanted:
        raise ValueError(
            f"{wanted} heads are to go, but only {len(chosen)} can with {min_heads_per_layer} left in each layer: "
            "choose a lower ratio or `min_heads_per_layer`."
        )
    return {
        layer: sorted(head for at, head in chosen if at == layer) for layer in sorted({layer for layer, _ in chosen})
    }
