"""Questions about some of several counts in English, such as how many more apples than pears someone bought."""

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked


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
    people = [_find_person(problem.text) for problem in problems]
    things = [_find_things(problem.text) for problem in problems]
    all_people = sorted({person for person in people if person})
    all_things = sorted(set().union(*things))
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        if problem.language == "en" and people[index] and things[index]:
            other_people = [person for person in all_people if person != people[index]]
            yield _compare(problem, people[index], things[index], other_people, all_things, per_problem, rng)
        else:
            yield []


def _find_person(text: str) -> str:
    """Return the first person in a text who has or does something, or an empty string."""
    match = _NAME.search(text)
    if match is None:
        return ""
    return match[1]


def _find_things(text: str) -> list[str]:
    """Return the things that a text counts, in alphabetical order."""
    things = set(_COUNTED.findall(text))
    return sorted(thing for thing in things if not _UNCOUNTED.search(thing))


def _noun(thing: str) -> str:
    """Return the last word of a thing: pens of red pens."""
    return thing.split()[-1]


def _compare(
    problem: MathWordProblem,
    person: str,
    things: list[str],
    other_people: list[str],
    all_things: list[str],
    per_problem: int,
    rng: random.Random,
) -> list[MathWordProblem]:
    """Return `per_problem` problems about a person and things of a problem, with other people and things."""
    new_problems: list[MathWordProblem] = []
    for number in range(1, per_problem + 1):
        first_thing = rng.choice(things)
        noun = _noun(first_thing)
        other_things = [thing for thing in all_things if _noun(thing) != noun]
        if len(other_people) < 2 or len(other_things) < 2:
            break
        names = [person, *rng.sample(other_people, 2)]
        three_things = [first_thing, *rng.sample(other_things, 2)]
        write = rng.choice((_write_relation, _write_groups, _write_groups))
        largest = rng.choice((20, 100, 900))
        counts = rng.sample(range(2, largest), 6)
        text, answer, equation = write(names, three_things, counts, rng)
        new_problems.append(MathWordProblem(text, equation, str(answer), f"{problem.id}-C{number}", "en"))
    return new_problems


def _write_groups(names: list[str], things: list[str], counts: list[int], rng: random.Random) -> tuple[str, int, str]:
    """Write a problem with the counts of two or three groups (things, people or times), which asks for the difference
    of two groups or for the sum of two or all. Return its text, answer and equation."""
    category = rng.choice(list(_TEXTS["questions"]))
    verb, base = rng.choice(list(_TEXTS["verbs"].items()))
    times = rng.choice(_TEXTS["times"])
    groups = {"things": things, "people": names, "times": times}[category]
    groups = groups[: rng.choice((2, 3))]
    # Counts of a second thing, which is not asked for.
    second_counts = counts[3:]
    if rng.random() < 0.5 or category == "things":
        second_counts = []
    story = _tell_story(category, verb, names[0], things, groups, counts, second_counts)
    smaller, larger = sorted(rng.sample(range(len(groups)), 2), key=counts.__getitem__)
    words = {"x": groups[larger], "y": groups[smaller], "thing": things[0], "name": names[0], "base": base}
    ask_difference, ask_sum, ask_total = [question.format(**words) for question in _TEXTS["questions"][category]]
    if rng.random() < 0.6:
        answer = counts[larger] - counts[smaller]
        return f"{story} {ask_difference}", answer, f"{counts[larger]}-{counts[smaller]}"
    question = ask_total
    summands = counts[: len(groups)]
    if len(groups) == 3 and rng.random() < 0.5:
        question = ask_sum
        summands = [counts[larger], counts[smaller]]
    return f"{story} {question}", sum(summands), "+".join(map(str, summands))


def _tell_story(
    category: str,
    verb: str,
    name: str,
    things: list[str],
    groups: list[str],
    counts: list[int],
    second_counts: list[int],
) -> str:
    """State the counts of the groups: one sentence for each person, or one sentence about all things or times."""
    facts = []
    for index, group in enumerate(groups):
        if category == "things":
            facts.append(f"{counts[index]} {group}")
            continue
        fact = f"{counts[index]} {things[0]}"
        if second_counts:
            fact += f" and {second_counts[index]} {things[1]}"
        if category == "people":
            facts.append(f"{group} {verb} {fact}.")
        else:
            facts.append(f"{fact} {group}")
    if category == "people":
        return " ".join(facts)
    return f"{name} {verb} {', '.join(facts[:-1])} and {facts[-1]}."


def _write_relation(
    names: list[str], things: list[str], counts: list[int], rng: random.Random
) -> tuple[str, int, str]:
    """Write a problem in which a person has some more or fewer than another, and which asks for that person's count.
    Return its text, answer and equation."""
    verb, base = rng.choice(list(_TEXTS["verbs"].items()))
    difference, first_count = sorted(counts[:2])
    is_more = rng.random() < 0.5
    word = "more" if is_more else "fewer"
    facts = [
        f"{names[0]} {verb} {first_count} {things[0]}.",
        f"{names[1]} {verb} {difference} {word} {things[0]} than {names[0]}.",
        f"{names[2]} {verb} {counts[2]} {things[rng.randrange(2)]}.",
    ]
    facts = facts[: rng.choice((2, 3))]
    rng.shuffle(facts)
    text = f"{' '.join(facts)} How many {things[0]} did {names[1]} {base}?"
    if is_more:
        return text, first_count + difference, f"{first_count}+{difference}"
    return text, first_count - difference, f"{first_count}-{difference}"
