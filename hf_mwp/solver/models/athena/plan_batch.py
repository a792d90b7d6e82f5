"""Gold plans of a batch, packed into index tensors, and the collator that makes them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.utils import logging

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.solver.batches.index_batch import IndexBatch
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor

from .configuration_athena import AthenaConfig
from .gold_plan import GoldPlan, PlanMaker
from .thoughts import OPERATIONS


logger = logging.get_logger(__name__)
MAX_PLANS = 100_000  # maximum number of plans that a collator caches, of about a kilobyte each
NEVER = 1 << 30  # round of padded reference rows, which are always masked, and step of candidates outside all steps
GROUP = 32  # maximum number of queries in a group; problems with more are split, to reduce the padding of others

# Rows of the table of all candidates: the last round with kept thoughts before the candidate's own, its place in the
# order of expansion, 1 for the target, the place in the pool or -1, and the step, see `PlanBatch`.
PROBLEM, ROUND, OPERATION, LEFT, RIGHT, BEFORE, ORDER, TARGET, PLACE, STEP = range(10)


@dataclass(frozen=True)
class AttentionLayout:
    """Layout that pads packed queries to `A` groups with `m` queries and `R` reference rows each. A group is a
    problem, or a part of a problem with many queries."""

    queries: Tensor  # (A, m): packed row of each query; the first one where padded
    query_rounds: Tensor  # (A, m): last round with kept thoughts before the query's own, -1 for none
    references: Tensor  # (A, R): packed reference row; row 0 of the problem where padded
    reference_rounds: Tensor  # (A, R): round of each reference row: -1 for row 0, `NEVER` for padding
    places: Tensor  # (n,): index of each packed query in the padded `A * m`

    def visible(self, chain: str) -> Tensor:
        """Return the mask `(A, m, R)`, which is true if a query may attend to a reference row."""
        queries = self.query_rounds.unsqueeze(2)
        references = self.reference_rounds.unsqueeze(1)
        if chain == "append":
            return references <= queries
        if chain == "replace":
            return references == queries
        return (references == -1).expand(-1, queries.shape[1], -1)


class PlanBatch(IndexBatch):
    """
    Index tensors with which [`AthenaModel`] scores all candidates of a batch.

    In training, the pool of each problem is known beforehand. Only thoughts that joined before the last round of their
    problem are operands or references of other candidates. These are computed in steps: step `n` contains the thoughts
    that joined in the `n`-th round with kept thoughts of each problem. All other candidates follow at once, in one
    call per operation. `num_numbers` is the width of the batch's `number_positions`.
    """

    def __init__(self, plans: Sequence[GoldPlan | None], num_numbers: int) -> None:
        self.shape = (len(plans), num_numbers)
        self.skipped = 0
        self.rounds = 0
        self.num_judged = 0
        self.num_pooled = 0
        columns = [np.zeros((STEP + 1, 0), int)]
        for problem, plan in enumerate(plans):
            if plan is None:
                self.skipped += 1
                continue
            self.rounds = max(self.rounds, plan.rounds)
            self.num_judged = max(self.num_judged, len(plan.kept))
            self.num_pooled = max(self.num_pooled, int(plan.kept.max()) + 1)
            columns.append(_columns(problem, plan, self.shape))
        table = np.concatenate(columns, 1)
        # Order the candidates by step, then by operation.
        table = table[:, np.lexsort((table[OPERATION], table[STEP]))]
        kept = np.flatnonzero(table[PLACE] >= 0)
        pooled = table[PROBLEM, kept] * self.num_pooled + table[PLACE, kept]
        # Replace operands (indices in the pool) by rows.
        rows = np.zeros(len(plans) * max(self.num_pooled, 1), int)
        rows[pooled] = kept
        for operand in (table[LEFT], table[RIGHT]):
            is_row = (table[OPERATION] >= 0) & (operand >= 0)
            operand[is_row] = rows[table[PROBLEM, is_row] * self.num_pooled + operand[is_row]]
        arrays = {
            # Operands: rows of candidates. `left` of an initial thought is a row of all numbers, then the constants.
            "left": table[LEFT],
            "right": table[RIGHT],
            "problems": table[PROBLEM],
            # Index of each candidate in the padded `B * num_judged`, in the order of expansion.
            "judged": table[PROBLEM] * self.num_judged + table[ORDER],
            # Rows of the candidates that join the pool, their index in the padded `B * num_pooled`, 1 for targets.
            "kept": kept,
            "pooled": pooled,
            "targets": table[TARGET, kept],
        }
        # For each step, then for all other candidates: numbers of initial candidates and of candidates of each
        # operation, and the attention layout.
        self.steps = []
        self._shapes = {}
        num_steps = table[STEP].max(where=table[STEP] < NEVER, initial=-1) + 1
        starts = np.searchsorted(table[STEP], np.arange(num_steps + 1))
        for step, (start, end) in enumerate(pairwise([*starts, table.shape[1]])):
            operations = table[OPERATION, start:end] + 1
            self.steps.append(np.bincount(operations, minlength=len(OPERATIONS) + 1).tolist())
            for name, array in _layout(table[:, start:end], table[:, :start], len(plans)).items():
                arrays[f"{step}.{name}"] = array.ravel()
                self._shapes[f"{step}.{name}"] = array.shape
        self.others = self.steps.pop()
        self._lengths = {name: len(array) for name, array in arrays.items()}
        self._set_buffer(torch.from_numpy(np.concatenate(list(arrays.values())).astype(np.int64)))

    def layout(self, step: int) -> AttentionLayout:
        """Return the attention layout of a step, or of all other candidates (`step=len(steps)`)."""
        tensors = {}
        for field in AttentionLayout.__dataclass_fields__:
            name = f"{step}.{field}"
            tensors[field] = getattr(self, name).view(self._shapes[name])
        return AttentionLayout(**tensors)


def _columns(problem: int, plan: GoldPlan, shape: tuple[int, int]) -> np.ndarray:
    """Return the part of the candidate table for a plan."""
    batch, num_numbers = shape
    round_of, operation, left, right = plan.candidates.T.copy()
    # Rows of the initial thoughts: all numbers of the batch, then the constants.
    is_initial = operation < 0
    source = plan.initial[left[is_initial]]
    left[is_initial] = np.where(source >= 0, problem * num_numbers + source, batch * num_numbers - 1 - source)
    # Number of rounds with kept thoughts before the candidate's own, and the last of them (-1 without one).
    is_kept = plan.kept >= 0
    rounds = np.unique(round_of[is_kept])
    num_before = np.searchsorted(rounds, round_of)
    before = np.append(rounds, -1)[num_before - 1]
    # Thoughts that join in the last round are not operands of other candidates.
    step = np.where(is_kept & (round_of < round_of[-1]), num_before, NEVER)
    problems = np.full_like(round_of, problem)
    order = np.arange(len(round_of))
    is_target = plan.kept == plan.target
    return np.stack([problems, round_of, operation, left, right, before, order, is_target, plan.kept, step])


def _layout(queries: np.ndarray, before: np.ndarray, batch: int) -> dict[str, np.ndarray]:
    """Return the arrays of an [`AttentionLayout`]. Reference rows: row 0 of all problems, then earlier thoughts."""
    # Split problems with many queries into groups, and pad the queries by group.
    chunk = _number_within(queries[PROBLEM], batch) // GROUP
    groups, group = np.unique(queries[PROBLEM] + batch * chunk, return_inverse=True)
    places, padded = _pad(group, len(groups))
    # Pad the earlier thoughts by problem, behind row 0.
    problems = groups % batch
    _, references = _pad(before[PROBLEM], batch)
    references = references[problems]
    first = problems[:, None]
    rounds = np.append(before[ROUND], NEVER)[references]
    return {
        "queries": np.maximum(padded, 0),
        "query_rounds": np.append(queries[BEFORE], -1)[padded],
        "references": np.concatenate([first, np.where(references >= 0, batch + references, first)], 1),
        "reference_rounds": np.concatenate([np.full_like(first, -1), rounds], 1),
        "places": places,
    }


def _number_within(groups: np.ndarray, count: int) -> np.ndarray:
    """Return the index of each member within its group."""
    sizes = np.bincount(groups, minlength=count)
    within = np.empty(len(groups), int)
    starts = np.cumsum(sizes) - sizes
    within[np.argsort(groups, kind="stable")] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return within


def _pad(groups: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the flat index of each member in padded groups, and the groups `(count, largest)`, padded with -1."""
    within = _number_within(groups, count)
    width = int(within.max(initial=-1)) + 1
    places = groups * width + within
    padded = np.full(count * width, -1)
    padded[places] = np.arange(len(groups))
    return places, padded.reshape(count, width)


class AthenaCollator(MwpCollator):
    """Collator that pads encoded problems, and adds their gold plans as `plans` ([`PlanBatch`]) and the mask of their
    candidates as `decoder_state_mask`. Each plan is made once. Problems whose targets cannot be written as a thought
    (an expression in ATHENA's form) stay in the batch, but have no plan and no candidates."""

    columns = (*MwpCollator.columns, "question_positions")
    # Neither changes the batches.
    not_settings = ("_plans", "skipped")

    def __init__(self, processor: MwpProcessor, config: AthenaConfig) -> None:
        super().__init__(processor, trees=False)
        self.maker = PlanMaker(config)
        self.skipped: Counter[str] = Counter()  # number of problems without a plan, by reason
        self._plans: dict[tuple, GoldPlan | None] = {}

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().__call__(features)
        if "labels" in batch:
            plans = [self.plan(feature) for feature in features]
            batch["plans"] = PlanBatch(plans, batch["number_positions"].shape[1])
            num_candidates = torch.tensor([0 if plan is None else len(plan.kept) for plan in plans])
            batch["decoder_state_mask"] = torch.arange(batch["plans"].num_judged) < num_candidates.unsqueeze(1)
        return batch

    def plan(self, feature: dict[str, Any]) -> GoldPlan | None:
        """Return the plan of an encoded problem, or `None` if its target cannot be written as a thought."""
        labels = feature.get("labels")
        positions = feature.get("number_positions")
        groups = feature.get("number_groups")
        values = feature.get("number_values")
        # Plans do not depend on the positions, only on which numbers the model reads.
        is_read = [position >= 0 for position in positions]
        key = (*labels, None, *is_read, None, *(groups or ()), None, *(values or ()))
        if key not in self._plans:
            try:
                plan = self.maker.make(labels, positions, groups, values)
            except ExpressionError as error:
                plan = None
                self.skipped[str(error)] += 1
                logger.warning_once(f"Problems are skipped if their target cannot be written as a thought: {error}.")
            if len(self._plans) >= MAX_PLANS:
                return plan
            self._plans[key] = plan
        return self._plans[key]
