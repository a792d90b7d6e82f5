"""Rounds of thought expansion of one problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .thought_table import AGGREGATES, TRANSFORMS, ThoughtTable


OPERATIONS = (*TRANSFORMS, *AGGREGATES)
"""Operations in the order of their ids; an initial thought has the operation -1."""


class Candidate(NamedTuple):
    """
    A thought to be judged.

    Args:
        operation (`int`): Index into `OPERATIONS`, -1 for an initial thought.
        left (`int`): Place of the operand in the pool; of an initial thought its place among these.
        right (`int`): Place of the second operand of `ADD` and `MUL`, -1 for others.
        thought (`int`): Its id in the [`ThoughtTable`].
    """

    operation: int
    left: int
    right: int
    thought: int


class Expansion:
    """
    Candidates of a problem, round by round (Kim et al., EMNLP 2023, section 3; order as in the authors' program).

    Round 0 has the initial thoughts. Odd rounds transform the thoughts that are new since the last odd round, even
    rounds combine those new since the last even round with all others and with each other. A candidate that is in the
    pool already, or earlier in the same round, is dropped; one that was rejected may return.

    Args:
        table ([`ThoughtTable`]): Table to which thoughts are added.
        initial (`Sequence[int]`): Initial thoughts.
        transforms (`Sequence[str]`, *optional*): Transforms in use, in order.
        max_rounds (`int`, *optional*, defaults to 0): Limit on the number of rounds, round 0 included; 0 for none.
        max_candidates (`int`, *optional*, defaults to 0): Limit on the candidates of a round, shared equally by the
            operations of the round; 0 for none.

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
        # Pool sizes when the last odd and the last even round were made.
        self._seen = {"transform": 0, "aggregate": 0}

    def next_round(self) -> list[Candidate] | None:
        """Return the candidates of the next round; `None` when the limit is reached or nothing is new."""
        if 0 < self.max_rounds <= self.round:
            return None
        if self.round == 0:
            found = [Candidate(-1, place, -1, thought) for place, thought in enumerate(self.initial)]
        else:
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
        limit = max(self.max_candidates // max(len(sources), 1), 1) if self.max_candidates else None
        for source in sources:
            first = len(found)
            for candidate in source:
                if candidate.thought in known:
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
        pairs = [(left, right) for left in range(start) for right in range(start, end)]
        pairs += [(left, right) for left in range(start, end) for right in range(left, end)]
        for left, right in pairs:
            yield Candidate(operation, left, right, self.table.aggregate(name, self.pool[left], self.pool[right]))
