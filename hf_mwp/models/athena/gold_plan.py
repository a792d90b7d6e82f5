"""Expansion of a problem under gold selection, made once."""

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
"""Positives of one round above which `gold="subsets"` falls back to the nodes as written, as the program does."""


@dataclass(frozen=True)
class GoldPlan:
    """
    Candidates of a problem that training judges, in the order of expansion (`J` candidates).

    Args:
        candidates (`np.ndarray` of shape `(J, 4)`): Round, operation, left and right operand; see [`Candidate`].
        kept (`np.ndarray` of shape `(J,)`): Place in the pool of positives, -1 for others.
        target (`int`): Place of the target in the pool.
        initial (`np.ndarray` of shape `(I,)`): Initial thoughts: slots of numbers, then `-1 - place` for constants.
        rounds (`int`): Number of rounds, round 0 included.
    """

    candidates: np.ndarray
    kept: np.ndarray
    target: int
    initial: np.ndarray
    rounds: int


class PlanMaker:
    """
    Builder of gold plans and initial thoughts by the rules of a configuration.

    Args:
        config ([`AthenaConfig`]): Symbols and rules.
    """

    def __init__(self, config: AthenaConfig) -> None:
        self.config = config
        self.vocabulary = OutputVocabulary(tuple(config.operators), tuple(config.constants))
        self.constants = InitialConstants.build(
            config.constants, config.initial_constants, config.reciprocal_constants
        )

    def initial_slots(self, positions: Sequence[int], groups: Sequence[int] | None) -> list[int]:
        """Return the numbers that are initial thoughts: those of the text, with merging the first of equal ones."""
        merges = self.config.merge_numbers and groups is not None
        return [slot for slot, at in enumerate(positions) if at >= 0 and not (merges and groups[slot] != slot)]

    def initial_thoughts(self, table: ThoughtTable, slots: Sequence[int]) -> list[int]:
        """Return the initial thoughts: numbers, then constants."""
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
        reader = TargetReader(table, self.constants, self.config.constants, groups, values)
        return reader.read(expression, self.config.transforms)

    def make(
        self,
        labels: Sequence[int],
        positions: Sequence[int],
        groups: Sequence[int] | None = None,
        values: Sequence[Fraction | str] | None = None,
    ) -> GoldPlan:
        """
        Expand a problem with its target's nodes as the positives.

        Args:
            labels (`Sequence[int]`): Prefix ids of the equation.
            positions (`Sequence[int]`): Token of each number, -1 for one that was cut off.
            groups (`Sequence[int]`, *optional*), values (*optional*): As in [`TargetReader`].

        Raises:
            `ExpressionError`: the target cannot be expressed.
        """
        table = ThoughtTable()
        slots = self.initial_slots(positions, groups)
        initial = self.initial_thoughts(table, slots)
        target = self.read_target(table, self.vocabulary.decode(labels), groups, values)
        rows = self._expand(table, initial, target, self.config.gold == "subsets")
        rows = rows or self._expand(table, initial, target, subsets=False)
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
        """Rows of round, operation, left, right, place in the pool, thought; `None` if there are too many subsets."""
        expansion = Expansion(table, initial, self.config.transforms)
        rows: list[tuple[int, int, int, int, int, int]] = []
        while (candidates := expansion.next_round()) is not None:
            positives = []
            for candidate in candidates:
                thought = candidate.thought
                positive = table.contains(target.thought, thought) if subsets else thought in target.nodes
                place = len(expansion.pool) + len(positives) if positive else -1
                rows.append((expansion.round - 1, *candidate[:3], place, thought))
                if positive:
                    positives.append(candidate)
            expansion.keep(positives)
            if any(candidate.thought == target.thought for candidate in positives):
                return rows
            if subsets and len(positives) > MAX_SUBSETS:
                return None
        absent = (table.children[node][0] for node in target.nodes - {*initial} if table.kinds[node] == NUMBER)
        raise ExpressionError(
            f"The target uses number N{next(absent, '?')}, which is no initial thought: the text was cut before it."
        )
