"""What a problem asks for, and what its numbers count."""

from __future__ import annotations

import re
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
    """

    kinds: frozenset[str]
    cues: frozenset[str]
    unit: str | None
    values: tuple[Fraction, ...]
    literals: tuple[str, ...]
    units: tuple[str | None, ...]
    clause: str

    @classmethod
    def read(cls, problem: MathWordProblem) -> Question:
        """Reads the text of a problem, of which neither equation nor answer is looked at."""
        words = read_question_words(problem.language)
        segments = problem.masked.segments
        clause = _question_clause(_MARK.join(segments), words)
        asked = [match.group(1) for match in words.asks.finditer(clause)]
        unit = words.name_of(next((unit for unit in reversed(asked) if unit), None))
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
        )

    @cached_property
    def amounts(self) -> tuple[Fraction, ...]:
        """The numbers that are no shares, multiples or 0; 1 if there are no others."""
        pairs = zip(self.values, self.units, strict=True)
        return tuple(value for value, unit in pairs if unit != RATIO and value) or (Fraction(1),)

    @cached_property
    def all_whole(self) -> bool:
        """Whether all numbers of the text are whole."""
        return all(value.denominator == 1 for value in self.values)


def _question_clause(text: str, words: QuestionWords) -> str:
    clauses = [clause for clause in _CLAUSE.split(text) if clause and clause.strip()]
    return next(
        (clause for clause in reversed(clauses) if words.question.search(clause)), clauses[-1] if clauses else ""
    )


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
