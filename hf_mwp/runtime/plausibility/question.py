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
        content = tomllib.loads(Path(__file__).with_name(f"words_{language}.toml").read_text(encoding="utf-8"))
        kinds = {kind["name"]: kind for kind in content["kinds"]}
        # Kind of each unit, and the canonical name of each unit with several names.
        self.kind_of = {unit.lower(): name for name, kind in kinds.items() for unit in kind.get("units", ())}
        self.same = {name: names[0] for names in content["same"] for name in names}
        # If true, all other nouns after numbers are units too.
        self.counts_nouns = bool(content.get("counts_nouns"))
        unit = _any_of(self.kind_of) + ("|[a-z]{3,}" if self.counts_nouns else "")
        between = rf"[\s（(]*(?:(?:{_any_of(content['between'])})\s+)*" if content.get("between") else r"[\s（(]*"
        # A word that asks for an amount, and the unit after it as a group; the unit after a number as a group.
        self.asks = _pattern(f"(?:{_any_of(content['asks'])}){between}({unit})?")
        self.unit = _pattern(rf"{between}({unit})(?!\s*[/／每])")
        # Words that indicate the kind of question; words for further hints ("total", "left").
        self.kinds = {name: _pattern(_any_of(kind["words"])) for name, kind in kinds.items() if kind.get("words")}
        self.cues = {cue["name"]: _pattern(_any_of(cue["words"])) for cue in content["cues"]}
        # Words before the number of a rate, and words after a share or multiple.
        self.rate = _pattern(_any_of(content["rates"]))
        self.ratio = _pattern(rf"\s*(?:{_any_of(content['ratios'])})")
        # Words in the text of a problem whose answer may be negative.
        self.negatives = _pattern(_any_of(content["negatives"]))
        # A word (in Chinese, a character), and function words to ignore.
        self.word = re.compile("[a-z]{3,}" if language == "en" else "[\u3400-\u9fff]")
        self.ignored = {word for text in content["ignored"] for word in (text.split() if " " in text else text)}

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
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(
        rf"\b{re.escape(word)}\b" if re.fullmatch(r"[a-z][a-z ]*", word) else re.escape(word) for word in ordered
    )


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

    @classmethod
    def read(cls, problem: MathWordProblem, trees: Sequence[tuple[Expression, float]] = ()) -> Question:
        """Analyse the text of a problem. Its equation and answer are ignored. Of a very long text, only the first
        `_MAX_NUMBERS` numbers are read, or as many as the `trees` of the beam use."""
        words = read_question_words(problem.language)
        mentions = problem.masked.mentions
        limit = _MAX_NUMBERS if len(mentions) <= _MAX_NUMBERS else _count_used(trees)
        segments = problem.masked.shown_segments[: limit + 1]
        numbers, values = problem.numbers[:limit], problem.values[:limit]
        text = _MARK.join(segments)
        if len(mentions) > limit:
            # The question may be at the end.
            text += problem.text[mentions[limit].start :]
        spans, place = find_question(text, problem.language)
        clauses = [text[start:end] for start, end in spans]
        clause = clauses[place] if clauses else ""
        asked, related = _overlaps(clauses, place, words)
        unit = words.name_of(next(filter(None, reversed(words.asks.findall(clause))), None))
        if unit is not None:
            kinds = {words.kind_of.get(unit, "counted")}
        else:
            kinds = {name for name, pattern in words.kinds.items() if pattern.search(clause)}
            kinds = {"share"} if "share" in kinds else kinds
        cues = frozenset(name for name, pattern in words.cues.items() if pattern.search(clause))
        is_signed = words.negatives.search(problem.text) or _SIGNED_NUMBER.search(problem.text)
        around = zip(numbers, segments, segments[1:], strict=False)
        return cls(
            kinds=frozenset(kinds),
            cues=cues,
            unit=None if kinds == {"share"} else unit,
            values=values,
            literals=numbers,
            units=tuple(_unit_of(literal, before, behind, words) for literal, before, behind in around),
            asked=asked,
            related=related,
            may_be_negative=not kinds or not kinds <= NEVER_NEGATIVE or "difference" in cues or bool(is_signed),
        )

    @cached_property
    def amounts(self) -> tuple[Fraction, ...]:
        """Return the numbers except shares, multiples and 0, or 1 if there are none."""
        pairs = zip(self.values, self.units, strict=True)
        return tuple(value for value, unit in pairs if unit != RATIO and value) or (Fraction(1),)

    @cached_property
    def all_whole(self) -> bool:
        """Return whether all numbers in the text are integers."""
        return all(value.denominator == 1 for value in self.values)


def _count_used(trees: Sequence[tuple[Expression, float]]) -> int:
    """Return how many of the first numbers contain all that trees use, at least `_MAX_NUMBERS`."""
    count = _MAX_NUMBERS
    for expression, _ in trees:
        for leaf in expression.leaves():
            if leaf.is_slot:
                count = max(count, leaf.slot_index + 1)
    return count


def _overlaps(clauses: Sequence[str], place: int, words: QuestionWords) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return, for each number, the overlap of its clause with the question (the clause at `place`), and the maximum
    overlap with a different clause: the number of common words divided by 3, at most 1. Both are 1 in the question."""
    contents = [set(words.word.findall(clause.lower())) - words.ignored for clause in clauses]
    asked, related = [], []
    for clause, content in zip(clauses, contents, strict=True):
        if _MARK not in clause:
            continue
        overlaps = [1.0]
        if content is not contents[place]:
            others = (each for each in (*contents[:_MAX_COMPARED], contents[place]) if each is not content)
            overlaps = [min(len(content & other), 3) / 3 for other in others]
        asked += clause.count(_MARK) * [overlaps[-1]]
        related += clause.count(_MARK) * [max(overlaps)]
    return tuple(asked), tuple(related)


def _unit_of(literal: str, before: str, behind: str, words: QuestionWords) -> str | None:
    if literal[-1] in "%％" or words.ratio.match(behind):
        return RATIO
    match = words.unit.match(behind)
    if match is None:
        # A fraction without a unit is a share.
        return RATIO if literal[0] in "(（" else None
    return None if words.rate.search(CLAUSE_BREAK.split(before)[-1]) else words.name_of(match.group(1))
