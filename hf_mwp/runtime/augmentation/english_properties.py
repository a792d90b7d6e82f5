"""Irrelevant properties of the people and things of English problems: weights, ages, temperatures, durations."""

import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hf_mwp.runtime.numbers.unit_tables import UNITS
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .distractors import with_added_numbers
from .english_distractors import SENTENCE, SUBJECT


SECOND_PROPERTY = 0.4
"""Share of the problems that get two properties."""
PHRASES = 0.35
"""Share of phrases after a count among the properties that have phrases and sentences."""
CHANGES = 0.4
"""Share of changes of a property, two sentences or clauses, among the properties that have changes."""

_PROPERTIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["properties"]
_TRIES = 12
_WORD = re.compile(r"[a-z]+|[%$]")
_THINGS = re.compile(r" ((?:(?!more |other |fewer |of )[a-z]+ )?[a-z]{2,}s)\b")
_NO_THINGS = frozenset(
    "as is was has his this times less plus minus points percents degrees thirds fourths fifths miles pounds ounces "
    "tons decimeters liters litres cups pints ml kgs lbs pennies nickels dimes quarters".split()
)
_ABOUT_NUMBERS = re.compile(r"\b(?:numbers?|sum|product|difference|quotient)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Count:
    """A count of things in a text: "26 bears"."""

    written: str
    things: str
    value: Fraction


@checked
def add_properties(problems: Iterable[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Add irrelevant properties of the people and things of English problems.

    "Paul had 28 strawberries in his basket." becomes "Paul had 28 strawberries weighing 150 grams in his basket.", or
    is followed by "Paul is 12 years old." One or two properties are added, each with one or two numbers. A problem
    does not get a property that one of its words may refer to: no weight if it mentions pounds. A property may change
    within a problem: "Paul weighed 40 kg at first. Paul had 28 strawberries in his basket. He picked 35 more, so his
    weight went up to 45 kg." The labels stay exact: the equation does not change. The result depends only on the
    arguments.

    Args:
        problems (iterable of [`MathWordProblem`]): Problems with equation and answer.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with `-P` and the number of added numbers appended to its id,
        or `None` if it is not English, is a single sentence, is about numbers only, or no property fits.

    Example:

    ```python
    >>> text = "Paul had 28 strawberries in his basket. He picked 35 more. How many strawberries did he have then?"
    >>> next(add_properties([MathWordProblem(text, "x=28+35", "63")])).text
    ```
    """
    for index, problem in enumerate(problems):
        rng = random.Random(f"properties {seed} {index} {problem.text}")
        yield _add_properties(problem, rng)


def _add_properties(problem: MathWordProblem, rng: random.Random) -> MathWordProblem | None:
    if problem.language != "en" or not problem.masked.mentions or not problem.agrees():
        return None
    if len(SENTENCE.findall(problem.text)) < 2 or _ABOUT_NUMBERS.search(problem.text):
        return None
    wanted = 1
    if rng.random() < SECOND_PROPERTY:
        wanted = 2
    extended = _ExtendedText(problem)
    for _ in range(_TRIES):
        if extended.num_properties == wanted:
            break
        extended.add(rng.choice(_PROPERTIES), rng)
    return with_added_numbers(problem, extended.text, extended.num_numbers, mark="P")


class _ExtendedText:
    """The text of a problem, to which properties are added."""

    def __init__(self, problem: MathWordProblem):
        self.text = problem.text
        self.num_properties = 0
        self.num_numbers = 0
        self._words = set(_WORD.findall(problem.text.lower()))
        self._used_values = problem.known_values
        self._counts = _find_counts(problem)
        subject = SUBJECT.search(problem.text)
        self._name = ""
        if subject:
            self._name = subject[1]

    def add(self, kind: Mapping[str, Any], rng: random.Random) -> None:
        """Add a property of a kind, an entry of `english_properties.toml`, if one fits."""
        stems = tuple(kind["stems"])
        if any(word.startswith(stems) for word in self._words):
            return
        form = self._choose_form(kind, rng)
        template = rng.choice(kind[form])
        count = rng.choice(self._counts or [None])
        words = self._words_for(template, count)
        numbers = self._numbers_for(template, kind["range"], count, rng)
        if words is None or numbers is None:
            return
        written = template.format(**words, **numbers)
        if form == "phrases":
            self._insert_phrase(written, count)
        elif form == "changes":
            before, after = written.split(" | ")
            self._insert_change(before, after, rng)
        else:
            self._insert_sentence(written, rng)
        self.num_properties += 1
        self.num_numbers += len(numbers)
        self._used_values.update(numbers.values())
        self._words.update(_WORD.findall(written.lower()))

    def _choose_form(self, kind: Mapping[str, Any], rng: random.Random) -> str:
        """Return the name of the templates to use: "sentences", "phrases" or "changes"."""
        if kind["phrases"] and self._counts and rng.random() < PHRASES:
            return "phrases"
        if kind["changes"] and "?" not in self.text[:-1] and rng.random() < CHANGES:
            return "changes"
        return "sentences"

    def _words_for(self, template: str, count: _Count | None) -> dict[str, str] | None:
        """Return the words of a template, or `None` if the problem lacks one."""
        words = {}
        if "{name}" in template:
            words["name"] = self._name
        if "{things}" in template:
            words["things"] = ""
            if count is not None:
                words["things"] = count.things
        if not all(words.values()):
            return None
        return words

    def _numbers_for(
        self, template: str, limits: tuple[int, int], count: _Count | None, rng: random.Random
    ) -> dict[str, int] | None:
        """Return new numbers for a template, or `None` if there are too few."""
        names = [name for name in ("n", "m", "part") if "{" + name + "}" in template]
        low, high = limits
        if "part" in names and count is not None:
            low = 2
            high = int(count.value) - 1
        choices = [value for value in range(low, high + 1) if value not in self._used_values]
        if len(choices) < len(names):
            return None
        numbers = rng.sample(choices, len(names))
        return dict(zip(names, numbers, strict=True))

    def _insert_phrase(self, phrase: str, count: _Count) -> None:
        """Insert a phrase after a count and its things."""
        self.text = self.text.replace(count.written, f"{count.written} {phrase}", 1)
        self._counts.remove(count)

    def _insert_sentence(self, sentence: str, rng: random.Random) -> None:
        """Insert a sentence after one of the sentences but the last."""
        sentences = SENTENCE.findall(self.text)
        sentences.insert(rng.randrange(1, len(sentences)), sentence)
        self.text = " ".join(sentences)

    def _insert_change(self, before: str, after: str, rng: random.Random) -> None:
        """
        Insert a sentence about a property before it changes, and about the property thereafter a later sentence, or a
        clause at the end of a sentence of the problem (`after` begins with a comma).
        """
        sentences = SENTENCE.findall(self.text)
        question = len(sentences) - 1
        before_index, after_index = sorted(rng.choices(range(question + 1), k=2))
        if after.startswith(","):
            after_index = min(after_index, question - 1)
            before_index = min(before_index, after_index)
            sentences[after_index] = sentences[after_index].rstrip(".!") + after
        else:
            sentences.insert(after_index, after)
        sentences.insert(before_index, before)
        self.text = " ".join(sentences)


def _find_counts(problem: MathWordProblem) -> list[_Count]:
    """Return the counts of things in a text."""
    counts = []
    for mention in problem.masked.mentions:
        match = _THINGS.match(problem.text, mention.end)
        if match is None or mention.value.denominator != 1:
            continue
        words = set(match[1].split())
        if not words & _NO_THINGS and not words & UNITS["en"].keys():
            counts.append(_Count(problem.text[mention.start : match.end()], match[1], mention.value))
    return counts
