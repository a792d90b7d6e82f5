"""Gold plans of a batch as packed integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ...data.batches.index_batch import IndexBatch
from .expansion import OPERATIONS
from .gold_plan import GoldPlan


NEVER = 1 << 30
"""Round of a padded reference row: no candidate sees it."""


class AttentionLayout:
    """
    Padding of some packed queries to `A` problems with `m` queries and `R` reference rows each.

    Args:
        queries (`(A, m)`): Packed row of each query; the first one where padded.
        query_rounds (`(A, m)`): Last round with kept thoughts before the query's own, -1 for none.
        references (`(A, R)`): Packed reference row; row 0 of the problem where padded.
        reference_rounds (`(A, R)`): Round of each reference row: -1 for row 0, `NEVER` for padding.
        places (`(n,)`): Place of each packed query in the padded `A * m`.
    """

    names = ("queries", "query_rounds", "references", "reference_rounds", "places")

    def __init__(self, queries, query_rounds, references, reference_rounds, places) -> None:
        self.queries, self.query_rounds, self.places = queries, query_rounds, places
        self.references, self.reference_rounds = references, reference_rounds

    def visible(self, chain: str) -> Tensor:
        """Mask `(A, m, R)`: True where a query sees a reference row."""
        queries, references = self.query_rounds.unsqueeze(2), self.reference_rounds.unsqueeze(1)
        if chain == "append":
            return references <= queries
        return references == queries if chain == "replace" else (references == -1).expand(-1, queries.shape[1], -1)


class PlanBatch(IndexBatch):
    """
    Index tensors with which [`AthenaModel`] judges all candidates of a batch.

    Under gold selection the pool of each problem is known beforehand. So the embeddings of all kept thoughts are made
    first, round by round; then those of all rejected candidates of all rounds in one call per operation; contexts of
    kept thoughts follow round by round, since later ones attend over earlier ones; those of all rejected ones at once.

    Args:
        plans (`Sequence[GoldPlan | None]`): A plan per problem; `None` for one without a target that can be expressed.
        num_numbers (`int`): Columns of the batch's `number_positions`.

    Attributes (`K` kept and `N` rejected candidates of `B` problems):
        left, right (`K + N`): operands, as rows of the kept thoughts; for initial thoughts `left` is a row of the
            initial embeddings, the `B * num_numbers` numbers and then the constants.
        problems (`K + N`): problem of each candidate.
        judged (`K + N`): place of each candidate in the `B * J` judged ones, in the order of expansion.
        pooled (`K`): place of each kept thought in the `B * P` pooled ones.
        targets (`K`): 1 for targets, 0 for others.
        steps (`tuple[tuple[int, ...], ...]`): for each round with kept thoughts, how many are initial and of each
            operation; kept rows have this order.
        rejected (`tuple[int, ...]`): the same for the rejected candidates of all rounds together.
        num_judged, num_pooled, rounds (`int`): `J`, `P` and the number of rounds of the longest plan.
        skipped (`int`): problems without a plan.

    Raises:
        `ValueError`: a plan has more numbers than the batch.
    """

    def __init__(self, plans: Sequence[GoldPlan | None], num_numbers: int) -> None:
        found = [(problem, plan) for problem, plan in enumerate(plans) if plan is not None]
        self.shape = (len(plans), num_numbers)
        self.skipped = len(plans) - len(found)
        self.rounds = max((plan.rounds for _, plan in found), default=0)
        self.num_judged = max((len(plan.kept) for _, plan in found), default=0)
        self.num_pooled = max((int(plan.kept.max()) + 1 for _, plan in found), default=0)
        columns = [_columns(problem, plan, self.shape) for problem, plan in found]
        table = np.concatenate(columns, 1) if columns else np.zeros((9, 0), int)
        is_kept = table[8] >= 0
        kept, rejected = table[:, is_kept], table[:, ~is_kept]
        kept = kept[:, np.lexsort((kept[2], kept[1]))]
        rejected = rejected[:, np.argsort(rejected[2], kind="stable")]
        # Rows of the kept thoughts, found by problem and place in the pool.
        rows = np.zeros(self.shape[0] * max(self.num_pooled, 1), int)
        rows[kept[0] * self.num_pooled + kept[8]] = np.arange(kept.shape[1])
        both = np.concatenate([kept, rejected], 1)
        for operand in both[3:5]:
            is_row = (both[2] >= 0) & (operand >= 0)
            operand[is_row] = rows[both[0, is_row] * self.num_pooled + operand[is_row]]
        _, starts = np.unique(kept[1], return_index=True)
        slices = [slice(*ends) for ends in zip(starts, np.append(starts, kept.shape[1])[1:], strict=True)]
        self.steps = tuple(_operation_counts(kept[2, each]) for each in slices)
        self.rejected = _operation_counts(rejected[2])
        parts = {
            "left": both[3],
            "right": both[4],
            "problems": both[0],
            "judged": both[0] * self.num_judged + both[6],
            "pooled": kept[0] * self.num_pooled + kept[8],
            "targets": kept[7],
        }
        layouts = [_layout(kept[:, each], kept[:, : each.start], len(plans)) for each in slices]
        layouts.append(_layout(rejected, kept, len(plans)))
        self._shapes = {}
        for number, layout in enumerate(layouts):
            for name, array in layout.items():
                parts[f"{number}.{name}"] = array.ravel()
                self._shapes[f"{number}.{name}"] = array.shape
        self._lengths = {name: len(part) for name, part in parts.items()}
        self._set_buffer(torch.from_numpy(np.concatenate(list(parts.values())).astype(np.int64)))

    @property
    def num_kept(self) -> int:
        return sum(map(sum, self.steps))

    def layout(self, step: int) -> AttentionLayout:
        """Return the attention of the kept thoughts of a step, or with `step=len(steps)` of the rejected ones."""
        names = [f"{step}.{name}" for name in AttentionLayout.names]
        return AttentionLayout(*(getattr(self, name).view(self._shapes[name]) for name in names))


def _columns(problem: int, plan: GoldPlan, shape: tuple[int, int]) -> np.ndarray:
    """
    Rows of integers per candidate: problem, round, operation, left, right, last round with kept thoughts before, place
    in the order of expansion, 1 for the target, place in the pool or -1.
    """
    batch, num_numbers = shape
    count = len(plan.kept)
    turn, operation, left, right = plan.candidates.T.copy()
    initial = operation < 0
    source = plan.initial[left[initial]]
    if source.max(initial=-1) >= num_numbers:
        raise ValueError(f"A plan uses number N{source.max()}, but `number_positions` has {num_numbers} columns.")
    left[initial] = np.where(source >= 0, problem * num_numbers + source, batch * num_numbers - 1 - source)
    kept_rounds = np.unique(turn[plan.kept >= 0])
    before = np.searchsorted(kept_rounds, turn) - 1
    last = np.where(before >= 0, kept_rounds[before], -1)
    target = (plan.kept == plan.target).astype(int)
    return np.stack([np.full(count, problem), turn, operation, left, right, last, np.arange(count), target, plan.kept])


def _operation_counts(operations: np.ndarray) -> tuple[int, ...]:
    return tuple(np.bincount(operations + 1, minlength=len(OPERATIONS) + 1).tolist())


def _layout(queries: np.ndarray, kept: np.ndarray, batch: int) -> dict[str, np.ndarray]:
    """Arrays of an [`AttentionLayout`]; reference rows are row 0 of all problems, then the kept thoughts."""
    problems, inverse = np.unique(queries[0], return_inverse=True)
    places, padded = _pad(inverse, len(problems))
    index_of = np.full(batch, -1)
    index_of[problems] = np.arange(len(problems))
    members = np.flatnonzero(index_of[kept[0]] >= 0)
    _, references = _pad(index_of[kept[0, members]], len(problems))
    is_query, is_reference = padded >= 0, references >= 0
    found = np.append(members, -1)[references]
    rounds = np.append(kept[1], NEVER)
    first = problems[:, None]
    return {
        "queries": np.where(is_query, padded, 0),
        "query_rounds": np.where(is_query, np.append(queries[5], -1)[padded], -1),
        "references": np.concatenate([first, np.where(is_reference, batch + found, first)], 1),
        "reference_rounds": np.concatenate([np.full_like(first, -1), np.where(is_reference, rounds[found], NEVER)], 1),
        "places": places,
    }


def _pad(groups: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Place of each member in a padded array of groups, flat; and that array `(count, largest)`, -1 where padded."""
    sizes = np.bincount(groups, minlength=count)
    width = int(sizes.max(initial=0))
    order = np.argsort(groups, kind="stable")
    within = np.empty(len(groups), int)
    within[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = groups * width + within
    padded = np.full(count * width, -1)
    padded[places] = np.arange(len(groups))
    return places, padded.reshape(count, width)
