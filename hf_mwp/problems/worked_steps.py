"""Composition of the steps of a worked answer, as in GSM8K, to one expression."""

import re
from fractions import Fraction
from itertools import product

from ..expressions import OPERATORS, Expression, ExpressionError, parse_number
from ..expressions.numbers import to_half_width
from .math_word_problem import MathWordProblem, ProblemError
from .numbers.number_mention import literal_of


STEP_FAULTS = {
    "no_steps": "the worked answer has no calculation",
    "unreadable_step": "a step of the worked answer cannot be read",
    "wrong_step": "a step of the worked answer does not give its result",
    "unknown_number": "a step uses a number of neither the text nor an earlier step",
    "unused_step": "the result of a step is not used",
    "ambiguous_steps": "the steps can be put together in more than one way",
    "open_steps": "the last step does not give the answer",
}
"""Reasons why steps cannot be composed, in the order of the checks."""

CONSTANTS = frozenset(
    map(Fraction, (*range(13), 24, 30, 31, 52, 60, 100, 365, 1000, "0.01", "0.1", "0.25", "0.5", "0.75", "1.5"))
)
"""Numbers that a step may use although the text lacks them: half, twice, a dozen, a percentage, units of time."""

MAX_READINGS = 256  # compositions that are tried

_STEP = re.compile(r"<<([^<>]*)>>")
_CURRENCY = re.compile(r"[$€£\s]")
_PERCENTAGE = re.compile(r"(?<![\d./^])(?:(\d+(?:\.\d+)?)(?:/100|\*0?\.01)|0?\.01\*(\d+(?:\.\d+)?))(?![\d.%^])")
_ROUNDING = Fraction(1, 200)  # largest error of a written result

Reading = tuple[Expression, frozenset[int]]  # a tree, and the earlier steps that it uses


class StepError(ProblemError):
    """
    Steps that cannot be composed.

    Args:
        reason (`str`): A key of `STEP_FAULTS`.
        detail (`str`, *optional*): The step.
    """

    def __init__(self, reason: str, detail: str = ""):
        self.reason = reason
        super().__init__(f"{STEP_FAULTS[reason]}{detail and f': {detail}'}")


def compose_steps(problem: MathWordProblem, worked: str) -> Expression:
    """
    Compose the steps of a worked answer to one expression: `48+48/2` for `<<48/2=24>>` and `<<48+24=72>>`.

    A number that is the result of an earlier step is replaced by that step. If it is a number of the text too, it is
    read so that the result of every step is used. All other numbers must be `CONSTANTS`. `20/100` and `0.2` are the
    percentage if the text has `20%` or `20 percent`.

    Args:
        problem ([`MathWordProblem`]): Problem with the answer, which the last step must give.
        worked (`str`): The worked answer, its steps in double angle brackets.

    Returns:
        [`Expression`]: over literals, not slots.

    Raises:
        StepError: no expression, or more than one, uses all steps.

    Example:

    ```python
    >>> problem = MathWordProblem("48 clips in April, half as many in May. How many?", answer="72", language="en")
    >>> compose_steps(problem, "48/2 = <<48/2=24>>24 in May, <<48+24=72>>72 in all").to_infix()
    '48+48/2'
    ```
    """
    steps = _STEP.findall(worked)
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
        raise StepError("open_steps", f"<<{steps[-1]}>>, the answer {problem.answer}")
    return _put_together(readings, steps)


class _TextNumbers:
    """Numbers of a text: values, meanings of its percentages, and literals that an equation may hold."""

    def __init__(self, problem: MathWordProblem):
        mentions = problem.masked.mentions
        self.values = set(problem.values)
        self.percentages = {100 * mention.value for mention in mentions if mention.is_percent}
        shares = {value / 100: Expression(f"{literal_of(value)}%") for value in self.percentages}
        if "percent" in problem.text.lower():
            written = {value: literal_of(value) for value in problem.values if value > 0}
            shares |= {value / 100: Expression.from_infix(f"{literal}/100") for value, literal in written.items()}
        self.derived = dict(each for value, share in shares.items() for each in _derived(value, share))
        # As `MathWordProblem.expression` reads equations.
        self.literals = (*problem.numbers, *(mention.text for mention in mentions if mention.is_bare_fraction))

    def percentage(self, match: re.Match) -> str:
        """Return `20%` for a match of `_PERCENTAGE` (`20/100`, `20*.01`), if the text has it."""
        number = match[1] or match[2]
        return f"{number}%" if Fraction(number) in self.percentages else match.group()


def _derived(value: Fraction, share: Expression) -> list[tuple[Fraction, Expression]]:
    """Return the numbers that a step may write for a percentage: for 20% also 1.2, 0.8, 120, 80 and 20."""
    one, hundred = Expression("1"), Expression("100")
    more, less = Expression("+", one, share), Expression("-", one, share)
    parts = {value: share, 1 + value: more, 1 - value: less}
    return [(100 * part, Expression("*", tree, hundred)) for part, tree in parts.items()] + list(parts.items())


def _read_step(step: str, numbers: _TextNumbers) -> tuple[Expression, Fraction]:
    """Return the calculation of a step, and its result as written."""
    calculation, _, written = _CURRENCY.sub("", to_half_width(step)).rpartition("=")
    calculation = _PERCENTAGE.sub(numbers.percentage, calculation)
    try:
        tree, result = Expression.from_infix(calculation, numbers.literals), parse_number(written)
        value = Fraction(tree.evaluate())
    except ExpressionError as error:
        raise StepError("unreadable_step", f"<<{step}>>") from error
    if abs(value - result) > max(_ROUNDING, abs(result) / 1000):
        raise StepError("wrong_step", f"<<{step}>>")
    return tree, result


def _step_readings(tree: Expression, results: list[Fraction], numbers: _TextNumbers, step: str) -> list[Reading]:
    """Return the meanings of a step: trees with `N0`, `N1`, ... for results of steps, and the steps that they use."""
    # Each leaf may be any earlier result of its value, or a number of its own.
    choices = []
    for leaf in tree.leaves():
        value = parse_number(leaf.token)
        earlier = [(Expression(f"N{index}"), index) for index, result in enumerate(results) if result == value]
        if value in numbers.values or not earlier:
            earlier.append((_number(leaf, value, numbers, step), None))
        choices.append(earlier)
    readings = {}
    for number, chosen in enumerate(product(*choices)):
        if number == MAX_READINGS:
            raise StepError("ambiguous_steps", f"<<{step}>>")
        filled = _fill(tree, [leaf for leaf, _ in chosen])
        used = frozenset(index for _, index in chosen if index is not None)
        readings.setdefault(filled.canonical(), (filled, used))
    return list(readings.values())


def _number(leaf: Expression, value: Fraction, numbers: _TextNumbers, step: str) -> Expression:
    """Return the leaf of a number of the text or a constant, or the tree of a percentage of the text."""
    if value not in numbers.values and value in numbers.derived:
        return numbers.derived[value]
    if value not in numbers.values and value not in CONSTANTS:
        raise StepError("unknown_number", f"{leaf.token} of <<{step}>>")
    return leaf


def _fill(tree: Expression, leaves: list[Expression]) -> Expression:
    """Return the tree with other leaves, given from left to right."""
    rest, stack = iter(leaves), []
    for token in tree.to_postfix():
        if token in OPERATORS:
            right, left = stack.pop(), stack.pop()
            stack.append(Expression(token, left, right))
        else:
            stack.append(next(rest))
    return stack.pop()


def _put_together(readings: list[list[Reading]], steps: list[str]) -> Expression:
    """Return the last step with the earlier ones inserted, if there is one way to use all of them."""
    needed = frozenset(range(len(steps) - 1))
    usable = frozenset().union(*(used for step in readings for _, used in step))
    if unused := needed - usable:
        raise StepError("unused_step", f"<<{steps[min(unused)]}>>")
    found: dict[Expression, Expression] = {}
    for number, chosen in enumerate(product(*readings)):
        if number == MAX_READINGS:
            raise StepError("ambiguous_steps", "too many ways")
        if needed.issubset(frozenset().union(*(used for _, used in chosen))):
            whole = _insert([tree for tree, _ in chosen])
            found.setdefault(whole.canonical(), whole)
    if len(found) != 1:
        ways = " or ".join(sorted(each.to_infix() for each in found.values()))
        raise StepError("ambiguous_steps" if found else "unused_step", ways)
    (whole,) = found.values()
    if whole.is_leaf:
        raise StepError("no_steps", f"<<{steps[-1]}>>")
    return whole


def _insert(trees: list[Expression]) -> Expression:
    """Return the last tree, with the trees of the earlier results that it uses in their place."""
    whole: list[Expression] = []
    for tree in trees:
        leaves = [whole[leaf.slot_index] if leaf.is_slot else leaf for leaf in tree.leaves()]
        try:
            whole.append(_fill(tree, leaves))
        except ExpressionError as error:
            raise StepError("unreadable_step", "too long") from error
    return whole[-1]
