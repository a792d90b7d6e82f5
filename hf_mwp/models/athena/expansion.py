"""Thought expansion of one problem: rounds of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...expressions.expression import MAX_NODES
from .thought_table import AGGREGATES, TRANSFORMS, ThoughtTable


OPERATIONS = (*TRANSFORMS, *AGGREGATES)
"""Operations in the order of their ids; an initial thought has the operation -1."""


class Candidate(NamedTuple):
    """
    Thought (expression with an embedding) that may join the pool.

    Args:
        operation (`int`): Index into `OPERATIONS`, -1 for an initial thought.
        left (`int`): Index of the operand in the pool; for an initial thought, its index among the initial thoughts.
        right (`int`): Index of the second operand of `ADD` and `MUL`, -1 for other operations.
        thought (`int`): Id of the thought in the [`ThoughtTable`].
    """

    operation: int
    left: int
    right: int
    thought: int


class Expansion:
    """
    Candidates of a problem, round by round (Kim et al., "ATHENA", EMNLP 2023, section 3; in the order of the authors'
    implementation).

    Round 0 has the initial thoughts. Odd rounds transform the thoughts that are new since the last odd round. Even
    rounds combine the thoughts that are new since the last even round with all thoughts of the pool. A candidate is
    dropped if it is already in the pool or in the same round, or too long for an [`Expression`] (flattened sums can
    double in each even round); rejected candidates may return.

    Args:
        table ([`ThoughtTable`]): Table to add thoughts to.
        initial (`Sequence[int]`): Initial thoughts.
        transforms (`Sequence[str]`, *optional*): Transforms to use, in order.
        max_rounds (`int`, *optional*, defaults to 0): Maximum number of rounds, including round 0; 0 for no limit.
        max_candidates (`int`, *optional*, defaults to 0): Maximum number of candidates in a round, shared equally by
            the operations of the round; 0 for no limit.

    Attributes:
        pool (`list[int]`): Thoughts that were kept.
        was_cut (`bool`): Whether a round had more candidates than `max_candidates`.
    """

    def __init__(
        self,
        table: ThoughtTable,
        initial: Sequence[int],
        transforms: Sequence[str] = TRANSFORMS,
        max_rounds: int = 0,
        max_candidates: int = 0,
    ) -> None:
        self.table, self.initial, self.transforms = table, list(initial), tuple(transforms)
        self.max_rounds, self.max_candidates = max_rounds, max_candidates
        self.pool: list[int] = []
        self.was_cut = False
        self.round = 0
        self._members: set[int] = set()
        # Pool sizes at the last odd and the last even round.
        self._seen = {"transform": 0, "aggregate": 0}

    def next_round(self) -> list[Candidate] | None:
        """Return the candidates of the next round, or `None` if the limit is reached or no thoughts are new."""
        if 0 < self.max_rounds <= self.round:
            return None
        if self.round == 0:
            found = [Candidate(-1, place, -1, thought) for place, thought in enumerate(self.initial)]
        else:
            # Transforms and aggregates take turns, each on thoughts that it has not seen yet.
            kind = "transform" if self.round % 2 else "aggregate"
            start, self._seen[kind] = self._seen[kind], len(self.pool)
            if start == len(self.pool):
                return None
            if kind == "transform":
                found = self._round([self._transformed(name, start) for name in self.transforms])
            else:
                found = self._round([self._aggregated(name, start) for name in AGGREGATES])
        self.round += 1
        return found

    def keep(self, chosen: Iterable[Candidate]) -> None:
        """Add candidates to the pool."""
        for candidate in chosen:
            self.pool.append(candidate.thought)
            self._members.add(candidate.thought)

    def _round(self, sources: list[Iterator[Candidate]]) -> list[Candidate]:
        found: list[Candidate] = []
        known = set(self._members)
        # The limit is shared equally by the operations of a round.
        limit = max(self.max_candidates // max(len(sources), 1), 1) if self.max_candidates else None
        for source in sources:
            first = len(found)
            for candidate in source:
                if candidate.thought in known or self.table.prefix_length(candidate.thought) > MAX_NODES:
                    continue
                if limit is not None and len(found) - first == limit:
                    self.was_cut = True
                    break
                known.add(candidate.thought)
                found.append(candidate)
        return found

    def _transformed(self, name: str, start: int) -> Iterator[Candidate]:
        operation = OPERATIONS.index(name)
        for place in range(start, len(self.pool)):
            yield Candidate(operation, place, -1, self.table.transform(name, self.pool[place]))

    def _aggregated(self, name: str, start: int) -> Iterator[Candidate]:
        operation, end = OPERATIONS.index(name), len(self.pool)
        # At least one of both thoughts is new: old with new, then new with new.
        pairs = [(left, right) for left in range(start) for right in range(start, end)]
        pairs += [(left, right) for left in range(start, end) for right in range(left, end)]
        for left, right in pairs:
            yield Candidate(operation, left, right, self.table.aggregate(name, self.pool[left], self.pool[right]))
