"""Function that combines the calculation steps of a worked answer, as in GSM8K, into one expression."""

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, islice, product

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number
from hf_mwp.runtime.expressions.canonical import canonical_prefix
from hf_mwp.runtime.expressions.evaluation import evaluate_postfix
from hf_mwp.runtime.expressions.expression import MAX_NODES
from hf_mwp.runtime.expressions.numbers import is_slot, literal_of, to_half_width
from hf_mwp.runtime.expressions.operators import PRECEDENCE, infix_from_postfix
from hf_mwp.runtime.expressions.parsing import infix_to_postfix

from .math_word_problem import MathWordProblem, ProblemError


STEP_FAULTS = {
    "no_steps": "the worked answer has no calculation",
    "unreadable_step": "a step of the worked answer cannot be parsed",
    "wrong_step": "a step of the worked answer does not evaluate to its result",
    "unknown_number": "a step uses a number from neither the text nor an earlier step",
    "unused_step": "the result of a step is not used",
    "ambiguous_steps": "the steps can be combined in more than one way",
    "open_steps": "the last step does not evaluate to the answer",
}
"""Reasons why steps cannot be combined, in the order of the checks."""

CONSTANTS = frozenset(map(Fraction, [*range(13), *"24 30 31 52 60 100 365 1000 .01 .1 .25 .5 .75 1.5".split()]))
"""Numbers that steps may use even if the text lacks them, such as half, twice, a dozen, and units of time."""

MAX_READINGS = 256  # maximum number of interpretations to try

STEP = re.compile(r"<<([^<>]*)>>")
_CURRENCY = re.compile(r"[$€£\s]")
_PERCENTAGE = re.compile(r"(?<![\d./^])(?:(\d+(?:\.\d+)?)(?:/100|\*0?\.01)|0?\.01\*(\d+(?:\.\d+)?))(?![\d.%^])")
_ROUNDING = Fraction(1, 200)  # maximum rounding error of a written result

Tokens = tuple[str, ...]  # of a tree in postfix order
Reading = tuple[Tokens, frozenset[int]]  # interpretation of a step, and indices of the earlier steps in it


class StepError(ProblemError):
    """Error if steps cannot be combined. `reason` is a key of `STEP_FAULTS`."""

    def __init__(self, reason: str, detail: str = ""):
        self.reason = reason
        super().__init__(f"{STEP_FAULTS[reason]}{detail and f': {detail}'}")


def compose_steps(problem: MathWordProblem, worked: str, drop_unused: bool = False) -> Expression:
    """
    Combine the steps of a worked answer into one expression: `48+48/2` for `<<48/2=24>>` and `<<48+24=72>>`.

    Numbers that equal the result of an earlier step are replaced by this step. If such a number also occurs in the
    text, the choice is made so that the results of all steps are used. Numbers from neither the text nor an earlier
    step must be in `CONSTANTS`. `20/100` and `0.2` become `20%` if the text contains `20%` or `20 percent`. With
    `drop_unused`, steps that the last step does not need are left out.

    The expression has literals instead of slots. Raises `StepError` if no or more than one expression uses all steps,
    or if the last step does not give the answer of the problem.
    """
    steps = STEP.findall(worked)
    if not steps:
        raise StepError("no_steps")
    numbers = _TextNumbers(problem)
    results: list[Fraction] = []
    readings: list[list[Reading]] = []
    for step in steps:
        tree, result = _read_step(step, numbers)
        readings.append(_step_readings(tree, results, numbers, step))
        results.append(result)
    if problem.answer_value is None or abs(results[-1] - Fraction(problem.answer_value)) > _ROUNDING:
        raise StepError("open_steps", f"<<{steps[-1]}>>, but the answer is {problem.answer}")
    return _put_together(readings, steps, drop_unused)


class _TextNumbers:
    """Numbers in a text: values, percentages with the numbers derived from them, and literals for the parser."""

    def __init__(self, problem: MathWordProblem):
        mentions = problem.masked.mentions
        self.values = set(problem.values)
        self.percentages = {100 * mention.value for mention in mentions if mention.is_percent}
        shares: dict[Fraction, Tokens] = {}
        for value in self.percentages:
            shares[value / 100] = (f"{literal_of(value)}%",)
        if "percent" in problem.text.lower():
            for value in problem.values:
                if value > 0:
                    shares[value / 100] = _postfix(f"{literal_of(value)}/100")
        # A step may use 0.2, 1.2, 0.8, 20, 120 and 80 for 20%.
        self.derived: dict[Fraction, Tokens] = {}
        for value, share in shares.items():
            trees = {value: share, 1 + value: ("1", *share, "+"), 1 - value: ("1", *share, "-")}
            for number, tree in trees.items():
                self.derived[100 * number] = (*tree, "100", "*")
            self.derived |= trees
        self.literals = problem.equation_literals

    def percentage(self, match: re.Match) -> str:
        """Replace a match of `_PERCENTAGE` (`20/100`, `20*.01`) by `20%` if the text contains `20%`."""
        number = match[1] or match[2]
        return f"{number}%" if Fraction(number) in self.percentages else match.group()


def write_percentages(calculation: str, problem: MathWordProblem) -> str:
    """Replace numbers such as `20/100` in a calculation by `20%` if the text of the problem contains `20%`."""
    return _PERCENTAGE.sub(_TextNumbers(problem).percentage, calculation)


def _postfix(calculation: str, literals: Iterable[str] = ()) -> Tokens:
    return tuple(token for token, _ in infix_to_postfix(calculation, literals))


def _read_step(step: str, numbers: _TextNumbers) -> tuple[Tokens, Fraction]:
    """Parse a step and return the tree of the calculation and the written result."""
    calculation, _, written = _CURRENCY.sub("", to_half_width(step)).rpartition("=")
    calculation = _PERCENTAGE.sub(numbers.percentage, calculation)
    try:
        tree = _postfix(calculation, numbers.literals)
        result = parse_number(written)
        value = Fraction(evaluate_postfix(tree))
    except ExpressionError as error:
        raise StepError("unreadable_step", f"<<{step}>>") from error
    if abs(value - result) > max(_ROUNDING, abs(result) / 1000):
        raise StepError("wrong_step", f"<<{step}>>")
    return tree, result


def _step_readings(tree: Tokens, results: list[Fraction], numbers: _TextNumbers, step: str) -> list[Reading]:
    """Return the interpretations of a step. In their trees, `N0`, `N1`, ... stand for results of earlier steps."""
    # Each leaf may be an earlier result with the same value, or a number from the text.
    choices: list[list[tuple[Tokens, int | None]]] = []
    for token in tree:
        if token in PRECEDENCE:
            choices.append([((token,), None)])
            continue
        value = parse_number(token)
        candidates = []
        for index, result in enumerate(results):
            if result == value:
                candidates.append(((f"N{index}",), index))
        if value in numbers.values or not candidates:
            candidates.append((_number(token, value, numbers, step), None))
        choices.append(candidates)
    # Interpretations with the same canonical tree count once.
    readings: dict[Tokens, Reading] = {}
    combinations = _combinations(choices, f"<<{step}>>")
    for combination in combinations:
        tokens = []
        used = set()
        for subtree, index in combination:
            tokens += subtree
            if index is not None:
                used.add(index)
        reading = tuple(tokens)
        key = canonical_prefix(reading) if len(combinations) > 1 else reading
        readings.setdefault(key, (reading, frozenset(used)))
    return list(readings.values())


def _combinations(choices: list[list], source: str) -> list[tuple]:
    """Return all ways to choose an item of each list. Raises `StepError` if there are more than `MAX_READINGS`."""
    combinations = list(islice(product(*choices), MAX_READINGS + 1))
    if len(combinations) > MAX_READINGS:
        raise StepError("ambiguous_steps", source)
    return combinations


def _number(literal: str, value: Fraction, numbers: _TextNumbers, step: str) -> Tokens:
    """Return the literal if it is a constant or a number in the text, or a tree if it is derived from a percentage."""
    if value not in numbers.values and value in numbers.derived:
        return numbers.derived[value]
    if value not in numbers.values and value not in CONSTANTS:
        raise StepError("unknown_number", f"{literal} in <<{step}>>")
    return (literal,)


def _put_together(readings: list[list[Reading]], steps: list[str], drop_unused: bool) -> Expression:
    """Insert the earlier steps into the last one. Raises `StepError` unless one expression contains all steps."""
    needed = set(range(len(steps) - 1))
    while unused := needed - _used_steps(chain.from_iterable(readings)):
        index = min(unused)
        if not drop_unused:
            raise StepError("unused_step", f"<<{steps[index]}>>")
        needed.remove(index)
        readings[index] = [((), frozenset())]
    # Try each combination of interpretations in which every earlier step is used.
    expressions: dict[Tokens, Tokens] = {}
    for combination in _combinations(readings, "the steps can be combined in too many ways"):
        if needed <= _used_steps(combination):
            tokens = _insert([tree for tree, _ in combination])
            expressions.setdefault(canonical_prefix(tokens), tokens)
    if len(expressions) != 1:
        reason = "ambiguous_steps" if expressions else "unused_step"
        raise StepError(reason, " or ".join(sorted(map(infix_from_postfix, expressions.values()))))
    (tokens,) = expressions.values()
    if len(tokens) == 1:
        raise StepError("no_steps", f"<<{steps[-1]}>>")
    return Expression.from_postfix(tokens)


def _used_steps(readings: Iterable[Reading]) -> set[int]:
    """Return the indices of the earlier steps in interpretations."""
    return set().union(*(used for _, used in readings))


def _insert(trees: list[Tokens]) -> Tokens:
    """Return the last tree with each slot replaced by the tree of the earlier step."""
    complete = []
    for tree in trees:
        tokens = []
        for token in tree:
            if is_slot(token):
                tokens += complete[int(token[1:])]
            else:
                tokens.append(token)
        if len(tokens) > MAX_NODES:
            raise StepError("unreadable_step", f"the expression has more than {MAX_NODES:,} nodes")
        complete.append(tuple(tokens))
    return complete[-1]
