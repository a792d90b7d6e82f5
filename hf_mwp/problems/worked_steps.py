"""Function that combines the calculation steps of a worked answer, as in GSM8K, into one expression."""

import re
from fractions import Fraction
from itertools import product

from ..expressions import Expression, ExpressionError, parse_number
from ..expressions.numbers import to_half_width
from ..expressions.operators import fold_postfix
from .math_word_problem import MathWordProblem, ProblemError
from .numbers.digit_numbers import literal_of


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

Reading = tuple[Expression, frozenset[int]]  # interpretation of a step: tree, and indices of the earlier steps in it


class StepError(ProblemError):
    """Error if steps cannot be combined. `reason` is a key of `STEP_FAULTS`, `unused` the index of an unused step."""

    def __init__(self, reason: str, detail: str = "", unused: int | None = None):
        self.reason, self.unused = reason, unused
        super().__init__(f"{STEP_FAULTS[reason]}{detail and f': {detail}'}")


def compose_steps(problem: MathWordProblem, worked: str) -> Expression:
    """
    Combine the steps of a worked answer into one expression: `48+48/2` for `<<48/2=24>>` and `<<48+24=72>>`.

    Numbers that equal the result of an earlier step are replaced by this step. If such a number also occurs in the
    text, the choice is made so that the results of all steps are used. Numbers from neither the text nor an earlier
    step must be in `CONSTANTS`. `20/100` and `0.2` become `20%` if the text contains `20%` or `20 percent`.

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
    return _put_together(readings, steps)


class _TextNumbers:
    """Numbers in a text: values, percentages with the numbers derived from them, and literals for the parser."""

    def __init__(self, problem: MathWordProblem):
        mentions = problem.masked.mentions
        self.values = set(problem.values)
        self.percentages = {100 * mention.value for mention in mentions if mention.is_percent}
        shares = {value / 100: Expression(f"{literal_of(value)}%") for value in self.percentages}
        if "percent" in problem.text.lower():
            written = {value: literal_of(value) for value in problem.values if value > 0}
            shares |= {value / 100: Expression.from_infix(f"{literal}/100") for value, literal in written.items()}
        # A step may use 0.2, 1.2, 0.8, 20, 120 and 80 for 20%.
        self.derived: dict[Fraction, Expression] = {}
        one, hundred = Expression("1"), Expression("100")
        for value, share in shares.items():
            parts = {value: share, 1 + value: Expression("+", one, share), 1 - value: Expression("-", one, share)}
            self.derived |= {100 * part: Expression("*", tree, hundred) for part, tree in parts.items()} | parts
        # The same literals as in `MathWordProblem.expression`.
        self.literals = (*problem.numbers, *(mention.text for mention in mentions if mention.is_bare_fraction))

    def percentage(self, match: re.Match) -> str:
        """Replace a match of `_PERCENTAGE` (`20/100`, `20*.01`) by `20%` if the text contains `20%`."""
        number = match[1] or match[2]
        return f"{number}%" if Fraction(number) in self.percentages else match.group()


def _read_step(step: str, numbers: _TextNumbers) -> tuple[Expression, Fraction]:
    """Parse a step and return the tree of the calculation and the written result."""
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
    """Return the interpretations of a step. In their trees, `N0`, `N1`, ... stand for results of earlier steps."""
    # Each leaf may be an earlier result with the same value, or a number from the text.
    choices = []
    for leaf in tree.leaves():
        value = parse_number(leaf.token)
        earlier = [(Expression(f"N{index}"), index) for index, result in enumerate(results) if result == value]
        if value in numbers.values or not earlier:
            earlier.append((_number(leaf, value, numbers, step), None))
        choices.append(earlier)
    # Interpretations with the same canonical tree count once.
    readings = {}
    for number, chosen in enumerate(product(*choices)):
        if number == MAX_READINGS:
            raise StepError("ambiguous_steps", f"<<{step}>>")
        filled = _fill(tree, [leaf for leaf, _ in chosen])
        used = frozenset(index for _, index in chosen if index is not None)
        readings.setdefault(filled.canonical(), (filled, used))
    return list(readings.values())


def _number(leaf: Expression, value: Fraction, numbers: _TextNumbers, step: str) -> Expression:
    """Return the leaf if it is a constant or a number in the text, or a tree if it is derived from a percentage."""
    if value not in numbers.values and value in numbers.derived:
        return numbers.derived[value]
    if value not in numbers.values and value not in CONSTANTS:
        raise StepError("unknown_number", f"{leaf.token} in <<{step}>>")
    return leaf


def _fill(tree: Expression, leaves: list[Expression]) -> Expression:
    """Replace the leaves of a tree by `leaves`, from left to right."""
    rest = iter(leaves)
    return fold_postfix(tree.to_postfix(), lambda _: next(rest), Expression)


def _put_together(readings: list[list[Reading]], steps: list[str]) -> Expression:
    """Insert the earlier steps into the last one. Raises `StepError` unless one expression contains all steps."""
    needed = frozenset(range(len(steps) - 1))
    usable = frozenset().union(*(used for step in readings for _, used in step))
    if unused := needed - usable:
        raise StepError("unused_step", f"<<{steps[min(unused)]}>>", min(unused))
    # Try each combination of interpretations in which every earlier step is used.
    found: dict[Expression, Expression] = {}
    for number, chosen in enumerate(product(*readings)):
        if number == MAX_READINGS:
            raise StepError("ambiguous_steps", "the steps can be combined in too many ways")
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
    """Return the last tree with each slot replaced by the tree of the earlier step."""
    whole: list[Expression] = []
    for tree in trees:
        whole.append(_fill(tree, [whole[leaf.slot_index] if leaf.is_slot else leaf for leaf in tree.leaves()]))
    return whole[-1]
