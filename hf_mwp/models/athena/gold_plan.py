"""Gold plans: expansions of training problems that keep the target's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...expressions import Expression, ExpressionError
from ...runtime.output_vocabulary import OutputVocabulary
from .configuration_athena import AthenaConfig
from .expansion import Expansion
from .target_reader import InitialConstants, Target, TargetReader
from .thought_table import NUMBER, ThoughtTable


MAX_SUBSETS = 30
"""With more positives in a round, `gold="subsets"` falls back to `"nodes"`, as in the authors' implementation."""


@dataclass(frozen=True)
class GoldPlan:
    """
    Candidates that a training problem scores, in the order of expansion (`J` candidates).

    Args:
        candidates (`np.ndarray` of shape `(J, 4)`): Round, operation, left and right operand; see [`Candidate`].
        kept (`np.ndarray` of shape `(J,)`): Index in the pool for positive candidates, -1 for all others.
        target (`int`): Index of the target in the pool.
        initial (`np.ndarray` of shape `(I,)`): Initial thoughts: indices of numbers, then `-1 - index` for constants.
        rounds (`int`): Number of rounds, including round 0.
    """

    candidates: np.ndarray
    kept: np.ndarray
    target: int
    initial: np.ndarray
    rounds: int


class PlanMaker:
    """
    Builder of gold plans and initial thoughts for a configuration.

    Args:
        config ([`AthenaConfig`]): Symbols and rules.
    """

    def __init__(self, config: AthenaConfig) -> None:
        self.config = config
        self.vocabulary = OutputVocabulary(tuple(config.operators), tuple(config.constants))
        self.constants = InitialConstants(config.constants, config.initial_constants, config.reciprocal_constants)

    def initial_slots(self, positions: Sequence[int], groups: Sequence[int] | None) -> list[int]:
        """Return the indices of numbers that are initial thoughts; of merged equal numbers, only the first."""
        merges = self.config.merge_numbers and groups is not None
        return [slot for slot, at in enumerate(positions) if at >= 0 and not (merges and groups[slot] != slot)]

    def initial_thoughts(self, table: ThoughtTable, slots: Sequence[int]) -> list[int]:
        """Add the initial thoughts to the table, numbers, then constants, and return their rows."""
        return [*map(table.number, slots), *map(table.constant, self.constants.initial)]

    def read_target(
        self,
        table: ThoughtTable,
        expression: Expression,
        groups: Sequence[int] | None = None,
        values: Sequence[Fraction | str] | None = None,
    ) -> Target:
        """Return the target thought of an equation; see [`TargetReader`] for arguments and errors."""
        values = None if self.config.strict_exponents else values
        groups = groups if self.config.merge_numbers else None
        return TargetReader(table, self.constants, groups, values).read(expression, self.config.transforms)

    def make(
        self,
        labels: Sequence[int],
        positions: Sequence[int],
        groups: Sequence[int] | None = None,
        values: Sequence[Fraction | str] | None = None,
    ) -> GoldPlan:
        """
        Return the plan of a problem, expanded with the target's nodes as positive candidates.

        Args:
            labels (`Sequence[int]`): Prefix ids of the equation.
            positions (`Sequence[int]`): Token of each number, -1 for numbers in truncated text.
            groups (`Sequence[int]`, *optional*), values (*optional*): See [`TargetReader`].

        Raises:
            `ExpressionError`: the target cannot be written as a thought.
        """
        table = ThoughtTable()
        slots = self.initial_slots(positions, groups)
        initial = self.initial_thoughts(table, slots)
        target = self.read_target(table, self.vocabulary.decode(labels), groups, values)
        # With too many subsets of operands, only the nodes of the target are positive.
        rows = self._expand(table, initial, target, self.config.gold == "subsets")
        rows = rows or self._expand(table, initial, target, subsets=False)
        # Numbers by their slots, constants as -1, -2, ...
        constants = [-1 - place for place in range(len(self.constants.initial))]
        kept = np.array([row[4] for row in rows], int)
        return GoldPlan(
            candidates=np.array([row[:4] for row in rows], int),
            kept=kept,
            target=next(row[4] for row in reversed(rows) if row[5] == target.thought),
            initial=np.array([*slots, *constants], int),
            rounds=rows[-1][0] + 1,
        )

    def _expand(
        self, table: ThoughtTable, initial: Sequence[int], target: Target, subsets: bool
    ) -> list[tuple[int, int, int, int, int, int]] | None:
        """
        Return the plan's rows `(round, operation, left, right, pool index, thought)`, or `None` if an operation has
        too many subsets of operands.
        """
        expansion = Expansion(table, initial, self.config.transforms)
        rows: list[tuple[int, int, int, int, int, int]] = []
        while (candidates := expansion.next_round()) is not None:
            positives = []
            for candidate in candidates:
                thought = candidate.thought
                # A candidate is kept if it is a part of the target; it then gets the next place in the pool.
                positive = table.contains(target.thought, thought) if subsets else thought in target.nodes
                place = len(expansion.pool) + len(positives) if positive else -1
                rows.append((expansion.round - 1, *candidate[:3], place, thought))
                if positive:
                    positives.append(candidate)
            expansion.keep(positives)
            # The round that finds the target is the last.
            if any(candidate.thought == target.thought for candidate in positives):
                return rows
            if subsets and len(positives) > MAX_SUBSETS:
                return None
        # No candidate is left: a number of the target is not among the initial thoughts.
        absent = (table.children[node][0] for node in target.nodes - {*initial} if table.kinds[node] == NUMBER)
        raise ExpressionError(f"the target uses number N{next(absent, '?')}, but the text was truncated before it")
