"""Distractors for Chinese problems: clauses with numbers that are not needed for the answer."""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from hf_mwp.runtime.problems.clauses import UNITS, find_question_words, split_clauses
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem


MAX_DISTRACTORS = 5
_MAX_STATEMENT = 28
_TRIES = 12
_SIMILAR = 0.7  # share of distractors whose unit occurs in the problem, if possible

# Beginnings of clauses that refer to an earlier clause.
_RELATIVE = re.compile(r"^(?:已知|有一道|其|而|但|且|并且|又|还|再|就|则|那么|求|问|如果|照)|这|[它他她]")
_ENDS = re.compile(r"[，,．。；;？?！!：\s]+$")
_UNIT = re.compile(rf"(?:[千毫分厘平立]方?[米克升秒钟])|小时|公[里斤顷]|[{UNITS}]")
_PARTS = (("红", "白"), ("大", "小"), ("新", "旧"), ("黑", "黄"), ("红", "绿"), ("蓝", "紫"))


def add_chinese_distractors(problems: Sequence[MathWordProblem], seed: int) -> Iterator[tuple[str, int] | None]:
    """Yield the text of each problem with distractors, and the number of added numbers ([`add_distractors`])."""
    runs = [run for problem in problems if (run := _opening(problem))]
    by_unit: dict[str, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        for unit in {unit for *_, unit in run}:
            by_unit[unit].append(index)
    for index, problem in enumerate(problems):
        yield _distract(problem, runs, by_unit, random.Random(f"{seed} {index} {problem.text}"))


Statement = tuple[str, Fraction, str]  # clauses with a single number, without final punctuation; its value and unit


def _opening(problem: MathWordProblem) -> list[Statement]:
    """Return the statements at the beginning of a problem, which make sense in a different problem."""
    opening: list[Statement] = []
    begin = 0
    for start, stop in split_clauses(problem.text)[:-1]:
        inside = [mention for mention in problem.masked.mentions if start <= mention.start < stop]
        statement = _ENDS.sub("", problem.text[begin:stop]).strip()
        unfit = len(inside) > 1 or len(statement) > _MAX_STATEMENT or find_question_words(statement)
        if unfit or len(opening) == MAX_DISTRACTORS or (not opening and _RELATIVE.search(statement)):
            break
        if inside:
            unit = _UNIT.match(problem.text, inside[0].end)
            opening.append((statement, inside[0].value, unit[0] if unit else ""))
            begin = stop
    return opening


def _distract(
    problem: MathWordProblem, runs: list[list[Statement]], by_unit: dict[str, list[int]], rng: random.Random
) -> tuple[str, int] | None:
    clauses = split_clauses(problem.text)
    if len(clauses) < 2 or not problem.masked.mentions or not problem.agrees():
        return None
    question = problem.text[clauses[-1][0] :]
    taken = problem.known_values
    matches = [_UNIT.match(problem.text, mention.end) for mention in problem.masked.mentions]
    units = sorted({match[0] for match in matches if match} & by_unit.keys())
    wanted, pieces = rng.choice((1, 1, 2, 2, 3, 4, 5)), []
    text, added = problem.text, 0
    # Some problems also get the sizes of parts of a counted set; the other clauses come from different problems.
    if rng.random() < 0.3 and (divided := _divide(problem, clauses, taken, rng)):
        text, values = divided
        taken |= values
        added = len(values)
    for _ in range(_TRIES):
        if added >= wanted or not runs:
            break
        pool = by_unit[rng.choice(units)] if units and rng.random() < _SIMILAR else range(len(runs))
        run = runs[pool[rng.randrange(len(pool))]]
        # Use all statements half of the time, otherwise only the first.
        run = run[: wanted - added] if rng.random() < 0.5 else run[:1]
        values = {value for _, value, _ in run}
        if values & taken or any(_overlaps(each, question, problem.text) for each, _, _ in run):
            continue
        taken |= values
        added += len(run)
        pieces.append([statement for statement, _, _ in run])
    return _insert(text, pieces, rng), added


def _divide(
    problem: MathWordProblem, clauses: list[tuple[int, int]], taken: set, rng: random.Random
) -> tuple[str, set] | None:
    """Split a counted set into parts (其中3条是红的，5条是白的) and return the new text and the added numbers."""
    choices = []
    for mention in problem.masked.mentions:
        unit = problem.text[mention.end : mention.end + 1]
        clause = next(span for span in clauses if span[0] <= mention.start < span[1])
        counted = mention.text.isdecimal() and mention.value >= 5 and unit in "个只本支张条辆棵块头朵盒根袋把件"
        if unit and counted and clause != clauses[-1] and problem.text[mention.start - 1 : mention.start] != "第":
            choices.append((mention, unit, clause))
    kinds = [pair for pair in _PARTS if not set("".join(pair)) & set(problem.text)]
    if not choices or not kinds:
        return None
    mention, unit, (_, stop) = rng.choice(choices)
    pair = rng.choice(kinds)
    first = rng.randrange(1, int(mention.value))
    parts = [first, int(mention.value) - first]
    if len({*parts}) < 2 or taken.intersection(parts):
        return None
    written = [f"{part}{unit}是{kind}的" for part, kind in zip(parts, pair, strict=True)]
    if rng.random() < 0.5:
        written, parts = written[:1], parts[:1]
    mark = problem.text[stop - 1]
    return f"{problem.text[: stop - 1]}，其中{'，'.join(written)}{mark}{problem.text[stop:]}", set(parts)


def _overlaps(statement: str, question: str, text: str) -> bool:
    """Return whether a statement shares so many words with the question or text that it may change the answer."""
    pairs = {statement[index : index + 2] for index in range(len(statement) - 1)}
    return sum(pair in question for pair in pairs) > 2 or sum(pair in text for pair in pairs) > 5


def _insert(text: str, pieces: Iterable[list[str]], rng: random.Random) -> str:
    """Insert each run of clauses before the last clause (60 % of cases) or before a random clause."""
    for run in pieces:
        starts = [start for start, _ in split_clauses(text)]
        place = starts[-1] if rng.random() < 0.6 else rng.choice(starts)
        mark = text[place - 1] if place else rng.choice("，。")
        mark = mark if mark in "，,．。；;" else "，"
        text = f"{text[:place]}{'，'.join(run)}{mark}{text[place:]}"
    return text
