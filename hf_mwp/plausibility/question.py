"""Question of a problem and units of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..problems import MathWordProblem
from ..problems.question_clause import CLAUSE_BREAK, find_question
from .question_words import QuestionWords, read_question_words


RATIO = ""
"""The unit of shares, multiples and percentages: none."""

_MARK = "\0"


@dataclass(frozen=True)
class Question:
    """
    Facts of a problem that the features of plausibility use.

    Args:
        kinds (`frozenset[str]`): Quantities asked for: `"counted"`, `"money"`, `"share"`, ...; empty if unknown.
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
        """Read the text of a problem; its equation and answer are ignored."""
        words = read_question_words(problem.language)
        segments = problem.masked.segments
        text = _MARK.join(segments)
        spans, place = find_question(text, problem.language)
        clauses = [text[start:end] for start, end in spans]
        clause = clauses[place] if clauses else ""
        asked, related = _in_common([words.content(each) for each in clauses], place)
        counts = [each.count(_MARK) for each in clauses]
        unit = words.name_of(next(filter(None, reversed(words.asks.findall(clause))), None))
        if unit is not None:
            kinds = {words.kind_of.get(unit, "counted")}
        else:
            kinds = {name for name, pattern in words.kinds.items() if pattern.search(clause)}
            kinds = {"share"} if "share" in kinds else kinds
        around = zip(problem.numbers, segments, segments[1:], strict=False)
        return cls(
            kinds=frozenset(kinds),
            cues=frozenset(name for name, pattern in words.cues.items() if pattern.search(clause)),
            unit=None if kinds == {"share"} else unit,
            values=problem.values,
            literals=problem.numbers,
            units=tuple(_unit_of(literal, before, behind, words) for literal, before, behind in around),
            clause=clause.replace(_MARK, "#"),
            asked=tuple(share for share, count in zip(asked, counts, strict=True) for _ in range(count)),
            related=tuple(share for share, count in zip(related, counts, strict=True) for _ in range(count)),
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


def _in_common(contents: Sequence[set[str]], place: int) -> tuple[list[float], list[float]]:
    """
    Return for each clause how many words it has in common with the clause that asks, which is at `place`, and with the
    nearest of all others, up to three and as a share of these; all of them for the clause that asks.
    """
    asked, related = [], []
    for index, content in enumerate(contents):
        shared = [0.0 if other is content else min(len(content & other), 3) / 3 for other in contents]
        asked.append(1.0 if index == place else shared[place])
        related.append(1.0 if index == place else max(shared))
    return asked, related


def _unit_of(literal: str, before: str, behind: str, words: QuestionWords) -> str | None:
    if literal[-1] in "%％" or words.ratio.match(behind):
        return RATIO
    match = words.unit.match(behind)
    if match is None:
        # A fraction without a unit is one of something.
        return RATIO if literal[0] in "(（" else None
    return None if words.rate.search(CLAUSE_BREAK.split(before)[-1]) else words.name_of(match.group(1))
