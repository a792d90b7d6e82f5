"""Questions about some of several counts in English, such as how many more apples than pears someone bought."""

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...checked_types import checked
from ..math_word_problem import MathWordProblem


_NAME = re.compile(
    r"\b(?!He |She |It |They |You |We |There )([A-Z][a-z]+)"
    r" (?:has|had|bought|found|made|read|baked|ate|saw|picked|collected|sold|drew|got|took|gave)\b"
)
_COUNTED = re.compile(
    r"\d (?!(?:more|fewer|less|other|of|times|and|or|to|in|on|per|were|are|who|that) )((?:[a-z]+ )?[a-z]{3,}s)\b"
)
# Words that end in s but do not name things that can be counted one by one.
_UNCOUNTED = re.compile(
    r"\b(?:was|has|his|this|its|does|gives|costs|dollars|cents|hours|minutes|seconds|days|weeks|months|years|times"
    r"|feet|inches|miles|meters|pounds|grams|kilograms|liters|gallons|ounces|degrees|points|pieces|items|things)\b"
)
# Verbs, times and questions of the new problems.
_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@checked
def compare_counts(
    problems: Sequence[MathWordProblem], per_problem: int = 3, seed: int = 0
) -> Iterator[list[MathWordProblem]]:
    """
    Create problems about the person and the things in each problem, with two to six counts, of which the question
    needs two or three: the difference or sum of the counts of things, people or times, or the count of a person who
    has some more or fewer than another person. The result depends only on the arguments.

    Args:
        problems (`Sequence[MathWordProblem]`): English problems.
        per_problem (`int`, *optional*, defaults to 3): Number of new problems for each problem.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.

    Yields:
        `list[MathWordProblem]`: The new problems, none if the problem is not English, names no person or counts no
        things.

    Example:

    ```python
    >>> texts = ["Tom has 5 apples.", "Ann bought 3 red pens.", "Sue saw 9 birds."]
    >>> problems = [MathWordProblem(text, language="en") for text in texts]
    >>> next(compare_counts(problems))[0].text
    ```
    """
    people = [match[1] if (match := _NAME.search(problem.text)) else "" for problem in problems]
    counted = [_COUNTED.findall(problem.text) for problem in problems]
    things = [sorted({each for each in found if not _UNCOUNTED.search(each)}) for found in counted]
    all_people = sorted({*people} - {""})
    nouns = {each: each.split()[-1] for each in sorted({each for found in things for each in found})}
    for index, (problem, person, own) in enumerate(zip(problems, people, things, strict=True)):
        rng, made = random.Random(f"{seed} {index} {problem.text}"), []
        other_people = [each for each in all_people if each != person]
        for number in range(per_problem if problem.language == "en" and person and own else 0):
            thing = rng.choice(own)
            other_things = [each for each, noun in nouns.items() if noun != nouns[thing]]
            if min(len(other_people), len(other_things)) < 2:
                break
            names, counted = [person, *rng.sample(other_people, 2)], [thing, *rng.sample(other_things, 2)]
            write = rng.choice((_write_relation, _write_parts, _write_parts))
            text, answer, equation = write(names, counted, rng.sample(range(2, rng.choice((20, 100, 900))), 6), rng)
            made.append(MathWordProblem(text, equation, str(answer), f"{problem.id}-C{number + 1}", "en"))
        yield made


def _write_parts(names: list[str], things: list[str], counts: list[int], rng: random.Random) -> tuple[str, int, str]:
    """Write a problem with the counts of two or three parts, which asks for their difference or for the sum of some.
    Return its text, answer and equation."""
    about = rng.choice(list(_TEXTS["questions"]))
    verb, base = rng.choice(list(_TEXTS["verbs"].items()))
    parts = {"things": things, "people": names, "times": rng.choice(_TEXTS["times"])}[about][: rng.choice((2, 3))]
    # Counts of a second thing, which is not asked for.
    is_bare = rng.random() < 0.5 or about == "things"
    besides = [""] * 3 if is_bare else [f" and {count} {things[1]}" for count in counts[3:]]
    name, thing = names[0], things[0]
    facts = list(zip(parts, counts, besides, strict=False))
    if about == "people":
        story = " ".join(f"{part} {verb} {count} {thing}{more}." for part, count, more in facts)
    else:
        what = [f"{n} {part}" if about == "things" else f"{n} {thing}{more} {part}" for part, n, more in facts]
        story = f"{name} {verb} {', '.join(what[:-1])} and {what[-1]}."
    first, second = sorted(rng.sample(range(len(parts)), 2), key=counts.__getitem__, reverse=True)
    asked = {"x": parts[first], "y": parts[second], "thing": thing, "name": name, "base": base}
    difference, some, every = (f"{story} {question.format(**asked)}" for question in _TEXTS["questions"][about])
    if rng.random() < 0.6:
        return difference, counts[first] - counts[second], f"{counts[first]}-{counts[second]}"
    added = [counts[first], counts[second]] if len(parts) == 3 and rng.random() < 0.5 else counts[: len(parts)]
    return some if len(added) < len(parts) else every, sum(added), "+".join(map(str, added))


def _write_relation(
    names: list[str], things: list[str], counts: list[int], rng: random.Random
) -> tuple[str, int, str]:
    """Write a problem in which a person has some more or fewer than another, and which asks for that person's count.
    Return its text, answer and equation."""
    verb, base = rng.choice(list(_TEXTS["verbs"].items()))
    known, step = max(counts[:2]), min(counts[:2])
    is_more = rng.random() < 0.5
    facts = [
        f"{names[0]} {verb} {known} {things[0]}.",
        f"{names[1]} {verb} {step} {'more' if is_more else 'fewer'} {things[0]} than {names[0]}.",
        f"{names[2]} {verb} {counts[2]} {things[rng.randrange(2)]}.",
    ][: rng.choice((2, 3))]
    rng.shuffle(facts)
    text = f"{' '.join(facts)} How many {things[0]} did {names[1]} {base}?"
    return (text, known + step, f"{known}+{step}") if is_more else (text, known - step, f"{known}-{step}")
