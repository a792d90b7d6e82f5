"""Analysis of problem texts for the plausibility features: kind of question, and units of numbers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.clauses import CLAUSE_BREAK, find_question


RATIO = ""  # unit of shares, multiples and percentages
REMAINDER = "remainder"
"""Rounding of a quotient to what is left over."""
# Kinds of answers that are only negative in problems with one of the words `negatives`, or about a difference.
NEVER_NEGATIVE = frozenset({"counted", "age", "days", "time", "length", "area", "volume", "weight"})
_MARK = "\0"
_SIGNED_NUMBER = re.compile(r"(?<![\w)）])[-−﹣－]\s*\d")
# Each clause is compared with the first clauses, and only the first numbers are read (and all numbers that an answer
# uses). No problem in the datasets has more; a pasted book would take hours.
_MAX_COMPARED = 200
_MAX_NUMBERS = 512


class QuestionWords:
    """Patterns for words that indicate questions and units, loaded from `words_zh.toml` or `words_en.toml`."""

    def __init__(self, language: str) -> None:
        path = Path(__file__).with_name(f"words_{language}.toml")
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        # Kind of each unit, and words that indicate the kind of question.
        self.kind_of = {}
        self.kinds = {}
        for entry in content["kinds"]:
            for unit in entry.get("units", ()):
                self.kind_of[unit.lower()] = entry["name"]
            if entry.get("words"):
                self.kinds[entry["name"]] = _pattern(_any_of(entry["words"]))
        # Canonical name of each unit with several names.
        self.same = {}
        for names in content["same"]:
            self.same |= dict.fromkeys(names, names[0])
        # If true, all other nouns after numbers are units too.
        self.counts_nouns = bool(content.get("counts_nouns"))
        unit = _any_of(self.kind_of)
        if self.counts_nouns:
            unit += "|[a-z]{3,}"
        between = r"[\s（(]*"
        if content.get("between"):
            between += rf"(?:(?:{_any_of(content['between'])})\s+)*"
        # A word that asks for an amount, and the unit after it as a group; the unit after a number as a group.
        self.asks = _pattern(f"(?:{_any_of(content['asks'])}){between}({unit})?")
        self.unit = _pattern(rf"{between}({unit})(?!\s*[/／每])")
        # Words for further hints ("total", "left").
        self.cues = {cue["name"]: _pattern(_any_of(cue["words"])) for cue in content["cues"]}
        # Words before the number of a rate, and words after a share or multiple.
        self.rate = _pattern(_any_of(content["rates"]))
        self.ratio = _pattern(rf"\s*(?:{_any_of(content['ratios'])})")
        # Questions for the whole things that suffice, or that can be had, and for what is left over.
        self.rounded_up = _pattern("|".join(content["rounded_up"]))
        self.rounded_down = _pattern("|".join(content["rounded_down"]))
        self.left_over = _pattern("|".join(content["left_over"]))
        self.divided = _pattern("|".join(content["divided"]))
        # Words in the text of a problem whose answer may be negative.
        self.negatives = _pattern(_any_of(content["negatives"]))
        # A word (in Chinese, a character), and function words to ignore.
        self.word = re.compile("[a-z]{3,}" if language == "en" else "[\u3400-\u9fff]")
        self.ignored = set()
        for text in content["ignored"]:
            self.ignored.update(text.split() if " " in text else text)

    def name_of(self, unit: str | None) -> str | None:
        """Return the canonical name of a unit."""
        if unit is None:
            return None
        unit = unit.lower()
        if self.counts_nouns and self.kind_of.get(unit, "counted") == "counted":
            unit = unit.removesuffix("s")
        return self.same.get(unit, unit)


read_question_words = cache(QuestionWords)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of the words that prefers longer words. English words must match whole words."""
    patterns = []
    for word in sorted(set(words), key=lambda word: (-len(word), word)):
        pattern = re.escape(word)
        if re.fullmatch(r"[a-z][a-z ]*", word):
            pattern = rf"\b{pattern}\b"
        patterns.append(pattern)
    return "|".join(patterns)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, flags=re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """Question and numbers of a problem, as used by the plausibility features."""

    kinds: frozenset[str]  # of the answer: "counted", "money", "share", ...; empty if unknown
    cues: frozenset[str]  # further hints in the question: "total", "left", ...
    unit: str | None  # of the answer; `None` if unknown or if the answer is a share
    # For each of the first numbers in the text: its value, how it is written, and its unit (`RATIO` for shares and
    # multiples, `None` if unknown); the overlap between its clause and the question, and the maximum with a different
    # clause.
    values: tuple[Fraction, ...]
    literals: tuple[str, ...]
    units: tuple[str | None, ...]
    asked: tuple[float, ...]
    related: tuple[float, ...]
    may_be_negative: bool  # the answer; no feature uses this
    # How a quotient is rounded to whole things: "up", "down" or not at all; "remainder" if what is left is asked.
    rounding: str | None = None

    @classmethod
    def read(cls, problem: MathWordProblem, trees: Sequence[tuple[Expression, float]] = ()) -> Question:
        """Analyse the text of a problem. Its equation and answer are ignored. Of a very long text, only the first
        `_MAX_NUMBERS` numbers are read, or as many as the `trees` of the beam use."""
        words = read_question_words(problem.language)
        mentions = problem.masked.mentions
        limit = _MAX_NUMBERS
        if len(mentions) > limit:
            limit = _count_used(trees)
        numbers = problem.numbers[:limit]
        segments = problem.masked.shown_segments[: limit + 1]
        text = _MARK.join(segments)
        if len(mentions) > limit:
            # The question may be at the end.
            text += problem.text[mentions[limit].start :]
        spans, question_index = find_question(text, problem.language)
        clauses = [text[start:end] for start, end in spans]
        question = clauses[question_index] if clauses else ""
        question_overlaps, clause_overlaps = _overlaps(clauses, question_index, words)
        units = []
        for literal, before, behind in zip(numbers, segments, segments[1:], strict=False):
            units.append(_unit_of(literal, before, behind, words))
        # The last unit that the question asks for decides the kind, otherwise its words do.
        asked_units = [unit for unit in words.asks.findall(question) if unit]
        unit = None
        if asked_units:
            unit = words.name_of(asked_units[-1])
            answer_kinds = {words.kind_of.get(unit, "counted")}
        else:
            answer_kinds = {name for name, pattern in words.kinds.items() if pattern.search(question)}
            if "share" in answer_kinds:
                answer_kinds = {"share"}
        cues = {name for name, pattern in words.cues.items() if pattern.search(question)}
        is_signed = words.negatives.search(problem.text) or _SIGNED_NUMBER.search(problem.text)
        return cls(
            kinds=frozenset(answer_kinds),
            cues=frozenset(cues),
            unit=None if answer_kinds == {"share"} else unit,
            values=problem.values[:limit],
            literals=numbers,
            units=tuple(units),
            asked=question_overlaps,
            related=clause_overlaps,
            may_be_negative=not answer_kinds
            or not answer_kinds <= NEVER_NEGATIVE
            or "difference" in cues
            or bool(is_signed),
            rounding=_rounding(problem.text, question, answer_kinds, words),
        )

    @cached_property
    def amounts(self) -> tuple[Fraction, ...]:
        """Return the numbers except shares, multiples and 0, or 1 if there are none."""
        amounts = []
        for value, unit in zip(self.values, self.units, strict=True):
            if value and unit != RATIO:
                amounts.append(value)
        return tuple(amounts) or (Fraction(1),)

    @cached_property
    def all_whole(self) -> bool:
        """Return whether all numbers in the text are integers."""
        return all(value.denominator == 1 for value in self.values)


def _rounding(text: str, question: str, kinds: set[str], words: QuestionWords) -> str | None:
    """Return how the question for a number of things rounds a quotient, or `None` if it does not."""
    if words.left_over.search(question) and words.divided.search(text) and "share" not in kinds:
        return REMAINDER
    if not kinds <= {"counted"}:
        return None
    if words.rounded_down.search(question):
        return "down"
    if words.rounded_up.search(question):
        return "up"
    return None


def _count_used(trees: Sequence[tuple[Expression, float]]) -> int:
    """Return how many of the first numbers contain all that trees use, at least `_MAX_NUMBERS`."""
    num_numbers = _MAX_NUMBERS
    for expression, _ in trees:
        for leaf in expression.leaves():
            if leaf.is_slot:
                num_numbers = max(num_numbers, leaf.slot_index + 1)
    return num_numbers


def _overlaps(
    clauses: Sequence[str], question_index: int, words: QuestionWords
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return, for each number, the overlap of its clause with the question (`clauses[question_index]`), and the
    maximum overlap with a different clause: the number of common words divided by 3, at most 1. Both are 1 in the
    question."""
    contents = [set(words.word.findall(clause.lower())) - words.ignored for clause in clauses]
    question_overlaps = []
    clause_overlaps = []
    for clause, content in zip(clauses, contents, strict=True):
        num_numbers = clause.count(_MARK)
        if not num_numbers:
            continue
        overlaps = []
        # The question is last.
        for other_content in (*contents[:_MAX_COMPARED], contents[question_index]):
            if other_content is not content:
                overlaps.append(min(len(content & other_content), 3) / 3)
        if content is contents[question_index]:
            overlaps = [1.0]
        question_overlaps += num_numbers * [overlaps[-1]]
        clause_overlaps += num_numbers * [max(overlaps)]
    return tuple(question_overlaps), tuple(clause_overlaps)


def _unit_of(literal: str, before: str, behind: str, words: QuestionWords) -> str | None:
    if literal[-1] in "%％" or words.ratio.match(behind):
        return RATIO
    match = words.unit.match(behind)
    if match is None:
        # A fraction without a unit is a share.
        return RATIO if literal[0] in "(（" else None
    # A rate ("3 per box") has a different unit.
    clause = CLAUSE_BREAK.split(before)[-1]
    return None if words.rate.search(clause) else words.name_of(match.group(1))
