"""Question of a problem and units of its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...problems import MathWordProblem
from .question_words import QuestionWords, read_question_words


RATIO = ""
"""The unit of shares, multiples and percentages: none."""

_CLAUSE = re.compile(r"[，。．,；;！!\n]|\.(?=\s|$)|(?<=[?？])")
_MARK = "\0"


@dataclass(frozen=True)
class Question:
    """
    A problem as the features of plausibility see it.

    Args:
        kinds (`frozenset[str]`): What is asked for: `"counted"`, `"money"`, `"share"`, ...; empty if unknown.
        cues (`frozenset[str]`): Other hints of the question: `"total"`, `"left"`, ...
        unit (`str`, *optional*): The unit in which the answer is given; none for a share.
        values (`tuple[Fraction, ...]`): The numbers of the text.
        literals (`tuple[str, ...]`): The same as written.
        units (`tuple[str | None, ...]`): Their units: `RATIO` for shares and multiples, `None` where unknown.
        clause (`str`): The clause that asks.
        asked (`tuple[float, ...]`): For each number how much its clause has in common with the one that asks.
        related (`tuple[float, ...]`): For each number how much its clause has in common with any other.
    """

    kinds: frozenset[str]
    cues: frozenset[str]
    unit: str | None
    values: tuple[Fraction, ...]
    literals: tuple[str, ...]
    units: tuple[str | None, ...]
    clause: str
    asked: tuple[float, ...]
    related: tuple[float, ...]

    @classmethod
    def read(cls, problem: MathWordProblem) -> Question:
        """Reads the text of a problem, of which neither equation nor answer is looked at."""
        words = read_question_words(problem.language)
        segments = problem.masked.segments
        clauses = [clause for clause in _CLAUSE.split(_MARK.join(segments)) if clause and clause.strip()]
        place = _question_place(clauses, words)
        clause = clauses[place] if clauses else ""
        asked, related = _in_common(clauses, place, words)
        units = [match.group(1) for match in words.asks.finditer(clause)]
        unit = words.name_of(next((unit for unit in reversed(units) if unit), None))
        kinds = _kinds(clause, unit, words)
        return cls(
            kinds=kinds,
            cues=frozenset(name for name, pattern in words.cues.items() if pattern.search(clause)),
            unit=None if kinds == {"share"} else unit,
            values=problem.values,
            literals=problem.numbers,
            units=tuple(
                _unit_of(literal, segments[index], segments[index + 1], words)
                for index, literal in enumerate(problem.numbers)
            ),
            clause=clause.replace(_MARK, "#"),
            asked=asked,
            related=related,
        )

    @cached_property
    def amounts(self) -> tuple[Fraction, ...]:
        """The numbers that are no shares, multiples or 0; 1 if there are no others."""
        pairs = zip(self.values, self.units, strict=True)
        return tuple(value for value, unit in pairs if unit != RATIO and value) or (Fraction(1),)

    @cached_property
    def all_whole(self) -> bool:
        """Return whether all numbers of the text are whole."""
        return all(value.denominator == 1 for value in self.values)


def _question_place(clauses: Sequence[str], words: QuestionWords) -> int:
    """Index of the last clause that asks; of the last one if none does."""
    last = len(clauses) - 1
    return next((place for place in range(last, -1, -1) if words.question.search(clauses[place])), last)


def _in_common(
    clauses: Sequence[str], place: int, words: QuestionWords
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """
    For each number how many words its clause has in common with the clause that asks, which is at `place`, and with
    the nearest of all others, up to three and as a share of these; all of them for a number of the clause that asks.
    """
    contents = [words.content(clause) for clause in clauses]
    asked: list[float] = []
    related: list[float] = []
    for index, clause in enumerate(clauses):
        shared = [min(len(contents[index] & each), 3) / 3 for each in contents]
        shared[index] = 0.0
        count = clause.count(_MARK)
        asked += [1.0 if index == place else shared[place]] * count
        related += [1.0 if index == place else max(shared)] * count
    return tuple(asked), tuple(related)


def _kinds(clause: str, unit: str | None, words: QuestionWords) -> frozenset[str]:
    if unit is not None:
        return frozenset([words.kind_of.get(unit, "counted")])
    shown = {name for name, pattern in words.kinds.items() if pattern.search(clause)}
    return frozenset(["share"] if "share" in shown else shown)


def _unit_of(literal: str, before: str, behind: str, words: QuestionWords) -> str | None:
    if literal[-1] in "%％" or words.ratio.match(behind):
        return RATIO
    match = words.unit.match(behind)
    if match is None:
        # A fraction without a unit is one of something.
        return RATIO if literal[0] in "(（" else None
    return None if words.rate.search(_CLAUSE.split(before)[-1]) else words.name_of(match.group(1))
