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
_COUNTERS = frozenset("个只本支张条辆棵块头朵盒根袋把件")
_ADJECTIVES = ("红白", "大小", "新旧", "黑黄", "红绿", "蓝紫")


def add_chinese_distractors(problems: Sequence[MathWordProblem], seed: int) -> Iterator[tuple[str, int] | None]:
    """Yield the text of each problem with distractors, and the number of added numbers ([`add_distractors`])."""
    openings = []
    openings_with_unit: defaultdict[str, list[Opening]] = defaultdict(list)
    for problem in problems:
        opening = _opening(problem)
        if opening:
            openings.append(opening)
            for unit in {unit for _, _, unit in opening}:
                openings_with_unit[unit].append(opening)
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        yield _distract(problem, openings, openings_with_unit, rng)


Statement = tuple[str, Fraction, str]  # clauses with a single number, without final punctuation; its value and unit
Opening = list[Statement]


def _opening(problem: MathWordProblem) -> Opening:
    """Return the statements at the beginning of a problem, which make sense in a different problem."""
    opening: Opening = []
    statement_start = 0
    for start, stop in split_clauses(problem.text)[:-1]:
        numbers = [mention for mention in problem.masked.mentions if start <= mention.start < stop]
        statement = _ENDS.sub("", problem.text[statement_start:stop]).strip()
        if len(numbers) > 1 or len(statement) > _MAX_STATEMENT or len(opening) == MAX_DISTRACTORS:
            break
        if find_question_words(statement) or (not opening and _RELATIVE.search(statement)):
            break
        if numbers:
            unit = _UNIT.match(problem.text, numbers[0].end)
            name = unit[0] if unit else ""
            opening.append((statement, numbers[0].value, name))
            statement_start = stop
    return opening


def _distract(
    problem: MathWordProblem,
    openings: list[Opening],
    openings_with_unit: dict[str, list[Opening]],
    rng: random.Random,
) -> tuple[str, int] | None:
    clauses = split_clauses(problem.text)
    if len(clauses) < 2 or not problem.masked.mentions or not problem.agrees():
        return None
    question = problem.text[clauses[-1][0] :]
    used_values = problem.known_values
    matches = [_UNIT.match(problem.text, mention.end) for mention in problem.masked.mentions]
    units = sorted({match[0] for match in matches if match} & openings_with_unit.keys())
    max_added = rng.choice((1, 1, 2, 2, 3, 4, 5))
    text = problem.text
    num_added = 0
    # Some problems also get the sizes of parts of a counted set; the other clauses come from different problems.
    if rng.random() < 0.3:
        divided = _divide(problem, clauses, used_values, rng)
        if divided is not None:
            text, values = divided
            used_values |= values
            num_added = len(values)
    runs = []
    for _ in range(_TRIES):
        if num_added >= max_added or not openings:
            break
        pool = openings
        if units and rng.random() < _SIMILAR:
            pool = openings_with_unit[rng.choice(units)]
        opening = rng.choice(pool)
        # Use all statements half of the time, otherwise only the first.
        max_statements = 1
        if rng.random() < 0.5:
            max_statements = max_added - num_added
        statements = [statement for statement, _, _ in opening[:max_statements]]
        values = {value for _, value, _ in opening[:max_statements]}
        if values & used_values or any(_overlaps(statement, question, problem.text) for statement in statements):
            continue
        used_values |= values
        num_added += len(statements)
        runs.append(statements)
    return _insert(text, runs, rng), num_added


def _divide(
    problem: MathWordProblem, clauses: list[tuple[int, int]], used_values: set, rng: random.Random
) -> tuple[str, set] | None:
    """Split a counted set into parts (其中3条是红的，5条是白的) and return the new text and the added numbers."""
    choices = []
    for mention in problem.masked.mentions:
        unit = problem.text[mention.end : mention.end + 1]
        is_count = mention.text.isdecimal() and mention.value >= 5 and unit in _COUNTERS
        is_ordinal = problem.text.endswith("第", 0, mention.start)
        is_in_question = mention.start >= clauses[-1][0]
        if is_count and not is_ordinal and not is_in_question:
            choices.append((mention, unit))
    unused_pairs = [pair for pair in _ADJECTIVES if not set(pair) & set(problem.text)]
    if not choices or not unused_pairs:
        return None
    mention, unit = rng.choice(choices)
    adjectives = rng.choice(unused_pairs)
    total = int(mention.value)
    first_size = rng.randrange(1, total)
    sizes = [first_size, total - first_size]
    if sizes[0] == sizes[1] or used_values.intersection(sizes):
        return None
    facts = [f"{size}{unit}是{adjective}的" for size, adjective in zip(sizes, adjectives, strict=True)]
    if rng.random() < 0.5:
        facts = facts[:1]
        sizes = sizes[:1]
    # Before the final mark of the clause.
    mark_start = next(stop for _, stop in clauses if mention.start < stop) - 1
    return f"{problem.text[:mark_start]}，其中{'，'.join(facts)}{problem.text[mark_start:]}", set(sizes)


def _overlaps(statement: str, question: str, text: str) -> bool:
    """Return whether a statement shares so many words with the question or text that it may change the answer."""
    pairs = {statement[index : index + 2] for index in range(len(statement) - 1)}
    num_in_question = sum(pair in question for pair in pairs)
    num_in_text = sum(pair in text for pair in pairs)
    return num_in_question > 2 or num_in_text > 5


def _insert(text: str, runs: Iterable[list[str]], rng: random.Random) -> str:
    """Insert each run of clauses before the last clause (60 % of cases) or before a random clause."""
    for run in runs:
        starts = [start for start, _ in split_clauses(text)]
        start = starts[-1]
        if rng.random() >= 0.6:
            start = rng.choice(starts)
        mark = text[start - 1] if start else rng.choice("，。")
        if mark not in "，,．。；;":
            mark = "，"
        text = f"{text[:start]}{'，'.join(run)}{mark}{text[start:]}"
    return text
