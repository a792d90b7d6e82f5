"""Irrelevant properties of the people and things of English problems: weights, ages, temperatures, durations."""

import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mwp.runtime.numbers.number_mention import NumberMention
from hf_mwp.runtime.numbers.units import UNITS
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .distractors import with_added_numbers
from .english_distractors import SENTENCE, SUBJECT


SECOND_PROPERTY = 0.4
"""Share of the problems that get two properties."""
PHRASES = 0.35
"""Share of the properties that are a phrase after a count, if the property has phrases."""

_PROPERTIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["properties"]
_TRIES = 12
_WORD = re.compile(r"[a-z]+|[%$]")
_THINGS = re.compile(r" ((?:(?!more |other |fewer |of )[a-z]+ )?[a-z]{2,}s)\b")
_NO_THINGS = frozenset("as is was has his this times less plus minus cups points percents degrees thirds fourths fifths".split())
_SUMMARY = re.compile(r"\b(?:numbers?|sum|product|difference|quotient)\b")


@dataclass(frozen=True)
class _Count:
    """A count of things in a text: "26 bears"."""

    mention: NumberMention
    things: str
    end: int


@checked
def add_properties(problems: Iterable[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Add irrelevant properties of the people and things of English problems.

    "Paul had 28 strawberries in his basket." becomes "Paul had 28 strawberries weighing 150 grams in his basket.", or
    is followed by "Paul is 12 years old." One or two properties are added, each with one or two numbers. A problem does
    not get a property that one of its words may refer to: no weight if it mentions pounds. The labels stay exact: the
    equation does not change. The result depends only on the arguments.

    Args:
        problems (iterable of [`MathWordProblem`]): Problems with equation and answer.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with `-P` and the number of added numbers appended to its id, or
        `None` if it is not English, is a single sentence, is about numbers only, or no property fits.

    Example:

    ```python
    >>> text = "Paul had 28 strawberries in his basket. He picked 35 more. How many strawberries did he have then?"
    >>> next(add_properties([MathWordProblem(text, "x=28+35", "63")])).text
    ```
    """
    for index, problem in enumerate(problems):
        rng = random.Random(f"properties {seed} {index} {problem.text}")
        yield _add_to(problem, rng)


def _add_to(problem: MathWordProblem, rng: random.Random) -> MathWordProblem | None:
    if problem.language != "en" or not problem.masked.mentions or not problem.agrees():
        return None
    if len(SENTENCE.findall(problem.text)) < 2 or _SUMMARY.search(problem.text.lower()):
        return None
    words = set(_WORD.findall(problem.text.lower()))
    counts = _find_counts(problem)
    used_values = problem.known_values
    num_properties = 1 + (rng.random() < SECOND_PROPERTY)
    text = problem.text
    num_added = 0
    for _ in range(_TRIES):
        kind = rng.choice(_PROPERTIES)
        if not num_properties:
            break
        if _mentions(words, kind["stems"]):
            continue
        uses_phrase = bool(kind["phrases"] and counts) and rng.random() < PHRASES
        template = rng.choice(kind["phrases"] if uses_phrase else kind["sentences"])
        count = rng.choice(counts) if counts else None
        fields = _choose_fields(template, kind, problem, count, used_values, rng)
        if fields is None:
            continue
        written = template.format(**fields)
        if uses_phrase:
            before = problem.text[count.mention.start : count.end]
            new_text = text.replace(before, f"{before} {written}", 1)
        else:
            new_text = _insert_sentence(text, written, rng)
        numbers = [value for value in fields.values() if isinstance(value, int)]
        text = new_text
        used_values.update(numbers)
        num_added += len(numbers)
        words.update(_WORD.findall(written.lower()))
        num_properties -= 1
    return with_added_numbers(problem, text, num_added, mark="P")


def _mentions(words: set[str], stems: list[str]) -> bool:
    """Return whether a word begins with one of the stems."""
    return any(word.startswith(tuple(stems)) for word in words)


def _find_counts(problem: MathWordProblem) -> list[_Count]:
    """Return the numbers of a text that count things, with the things in the plural."""
    counts = []
    for mention in problem.masked.mentions:
        match = _THINGS.match(problem.text, mention.end)
        if match is None or mention.value.denominator != 1:
            continue
        words = set(match[1].split())
        if not words & _NO_THINGS and not words & UNITS["en"].keys():
            counts.append(_Count(mention, match[1], match.end()))
    return counts


def _choose_fields(
    template: str,
    kind: Mapping[str, Any],
    problem: MathWordProblem,
    count: _Count | None,
    used_values: set,
    rng: random.Random,
) -> dict[str, str | int] | None:
    """Return the values of the placeholders of a template, or `None` if the problem lacks one."""
    fields: dict[str, str | int] = {}
    if "{name}" in template:
        subject = SUBJECT.search(problem.text)
        if subject is None:
            return None
        fields["name"] = subject[1]
    if "{things}" in template:
        if count is None:
            return None
        fields["things"] = count.things
    low, high = kind["range"]
    if "{part}" in template:
        low, high = 2, int(count.mention.value) - 1
    choices = [value for value in range(low, high + 1) if value not in used_values]
    names = [name for name in ("n", "m", "part") if "{" + name + "}" in template]
    if len(choices) < len(names):
        return None
    fields.update(zip(names, rng.sample(choices, len(names)), strict=True))
    return fields


def _insert_sentence(text: str, sentence: str, rng: random.Random) -> str:
    """Insert a sentence after one of the sentences of a text but the last."""
    sentences = SENTENCE.findall(text)
    sentences.insert(rng.randrange(1, len(sentences)), sentence)
    return " ".join(sentences)
