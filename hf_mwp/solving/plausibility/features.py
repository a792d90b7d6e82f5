"""Features of an answer's plausibility."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...expressions.evaluation import Number
from .candidate_answer import MOST_DECIMALS, CandidateAnswer, Step, decimals, digits, is_whole
from .question import RATIO


FEATURE_LIST = "3"
"""
Version of the list below and of the words it rests on: count it up with each change. Weights of another one are
refused, unless features were only added to it: then those count for nothing.
"""

_ADDED_BY = {
    "2": (
        *("digits", "digits_above", "denominator", "numerator", "round"),
        *("step_digits", "step_denominator", "step_numerator"),
    ),
    "3": ("no_operation", "lone_asked", "used_asked", "unused_asked", "used_unrelated", "unused_related"),
}
ADDED_SINCE = {"1": _ADDED_BY["2"] + _ADDED_BY["3"], "2": _ADDED_BY["3"]}
"""What older lists lack, by their versions."""

MEASURES = ("money", "length", "area", "volume", "weight", "time")


@dataclass(frozen=True)
class Feature:
    """
    A feature of an answer.

    Args:
        name (`str`): Its name, under which its weight is stored.
        meaning (`str`): What it measures; 1 where that holds and 0 where not, if it is no count or amount.
        measure (`Callable`): Its number for a [`CandidateAnswer`].
        complaint (`str`, *optional*): What a reader is told where it speaks against an answer, with `{value}`,
            `{unit}` and `{kind}` of what is asked for.
        larger_is_worse (`bool`, *optional*, defaults to `True`): Whether the complaint is about a larger number; if
            not, about a smaller one.
    """

    name: str
    meaning: str
    measure: Callable[[CandidateAnswer], float]
    complaint: str = ""
    larger_is_worse: bool = True


def feature_row(answer: CandidateAnswer) -> list[float]:
    """The features of an answer in the order of [`FEATURES`]."""
    return [float(feature.measure(answer)) for feature in FEATURES]


def _asks(answer: CandidateAnswer, *kinds: str) -> bool:
    return not answer.question.kinds.isdisjoint(kinds)


def _cued(answer: CandidateAnswer, cue: str) -> bool:
    return cue in answer.question.cues


def _above_all(answer: CandidateAnswer) -> bool:
    return answer.value > max(answer.question.amounts)


def _orders(larger: float, smaller: float) -> float:
    """Orders of magnitude from one positive number up to another, 4 at most, 0 where it goes down."""
    return min(math.log10(larger / smaller), 4.0) if larger > smaller > 0 else 0.0


def _denominator(number: Number) -> float:
    """Digits of the denominator, as a logarithm, 6 at most; so many of a rounded number."""
    return min(math.log10(number.denominator), 6.0) if isinstance(number, Fraction) else 6.0


def _numerator(number: Number) -> float:
    """Digits of the numerator, as a logarithm, 12 at most; of a rounded number those before the point."""
    return min(math.log10(1 + abs(number.numerator if isinstance(number, Fraction) else number)), 12.0)


def _unused(answer: CandidateAnswer, ratio: bool) -> int:
    return sum((answer.question.units[index] == RATIO) == ratio for index in answer.unused)


def _most(measure: Callable[[Number], float], answer: CandidateAnswer) -> float:
    return max(map(measure, answer.inner_results), default=0)


def _is_uneven(step: Step) -> bool:
    operator, left, right, result = step
    return operator == "/" and is_whole(left) and is_whole(right) and not is_whole(result)


def _in_text(answer: CandidateAnswer, used: bool) -> bool:
    values = answer.question.values
    return answer.value in ([values[index] for index in answer.slots] if used else values)


def _mean(answer: CandidateAnswer, shares: Sequence[float]) -> float:
    """Mean of the shares of the numbers that are used, 0 if none is."""
    used = set(answer.slots)
    return sum(shares[index] for index in used) / len(used) if used else 0.0


def _lone_asked(answer: CandidateAnswer) -> float:
    return 0.0 if answer.steps else _mean(answer, answer.question.asked)


def _inversions(answer: CandidateAnswer) -> float:
    slots = answer.slots
    pairs = len(slots) - 1
    return sum(first > second for first, second in zip(slots, slots[1:], strict=False)) / pairs if pairs > 0 else 0.0


def _differs_in_unit(answer: CandidateAnswer) -> bool:
    found, asked = answer.dimensions.unit, answer.question.unit
    return bool(found) and bool(asked) and found != asked


F = Feature
FEATURES = (
    # What the solver says.
    F(
        "log_mass",
        "Logarithm of the probability of all trees with this value",
        lambda a: a.log_mass,
        "less probable",
        False,
    ),
    F(
        "num_trees",
        "Logarithm of the number of these trees",
        lambda a: math.log(len(a.trees)),
        "fewer equations",
        False,
    ),
    F("rank", "Logarithm of 1 plus the rank of the best of them", lambda a: math.log(1 + a.best.rank)),
    # The value against what is asked for.
    F("negative", "Less than 0", lambda a: a.value < 0, "negative {kind}"),
    F("zero", "0", lambda a: a.value == 0, "{kind} of 0"),
    F(
        "not_whole_counted",
        "Not whole where things or years of age are counted",
        lambda a: _asks(a, "counted", "age") and not a.is_whole,
        "{value} {unit}",
    ),
    F("not_whole_days", "Not whole where days are", lambda a: _asks(a, "days") and not a.is_whole, "{value} {unit}"),
    F(
        "not_whole_measure",
        "Not whole where money, a length, an area, a volume, a weight or a time is asked for",
        lambda a: _asks(a, *MEASURES) and not a.is_whole,
    ),
    F(
        "not_whole_other",
        "Not whole where it is not known what is asked for",
        lambda a: not a.question.kinds and not a.is_whole,
    ),
    F(
        "not_whole_of_whole",
        "Not whole although all numbers of the text are, and no share is asked for",
        lambda a: not a.is_whole and a.question.all_whole and not _asks(a, "share"),
        "{value}, from whole numbers",
    ),
    F(
        "inexact_measure",
        "Not exact in four decimals where something measured is asked for",
        lambda a: _asks(a, *MEASURES) and a.decimals > MOST_DECIMALS,
        "{value}...: no finite decimal",
    ),
    F(
        "inexact_share",
        "The same where a share is",
        lambda a: _asks(a, "share") and a.decimals > MOST_DECIMALS,
        "{value}...: no finite decimal",
    ),
    F(
        "inexact_other",
        "The same elsewhere",
        lambda a: not _asks(a, "share", *MEASURES) and a.decimals > MOST_DECIMALS,
        "{value}...: no finite decimal",
    ),
    F("decimals", "Its decimals, 4 at most, as a share of 4", lambda a: min(a.decimals, 4) / 4, "{value}, not whole"),
    F(
        "money_decimals",
        "More than two decimals where money is asked for",
        lambda a: _asks(a, "money") and a.decimals > 2,
        "{value} {unit}",
    ),
    F("share_above_one", "A share above 1", lambda a: _asks(a, "share") and a.value > 1, "a share above 1"),
    F("share_one", "A share of 1", lambda a: _asks(a, "share") and a.value == 1, "a share of all"),
    F("times_below_one", "A multiple below 1", lambda a: _asks(a, "times") and a.value < 1, "a multiple below 1"),
    F(
        "below_one",
        "Between 0 and 1 where neither a share nor a multiple is asked for",
        lambda a: not _asks(a, "share", "times") and 0 < a.value < 1,
        "only {value} {unit}",
    ),
    F("one", "1", lambda a: a.value == 1, "1 {unit}"),
    # The value against the numbers of the text.
    F("in_text", "A number of the text", lambda a: _in_text(a, False), "{value} stands in the text"),
    F("in_text_used", "A number that the equation uses", lambda a: _in_text(a, True), "{value} stands in the text"),
    F(
        "orders_above",
        "Orders of magnitude above the largest amount of the text",
        lambda a: _orders(a.value, max(a.question.amounts)),
        "{value} is large beside the numbers of the text",
    ),
    F(
        "orders_below",
        "Orders of magnitude below the smallest amount of the text",
        lambda a: _orders(min(a.question.amounts), a.value),
        "{value} is small beside the numbers of the text",
    ),
    F(
        "total_small",
        "A total that is less than the largest amount",
        lambda a: _cued(a, "total") and not _above_all(a),
        "a total below one of its parts",
    ),
    F(
        "left_large",
        "A rest above the largest amount",
        lambda a: _cued(a, "left") and _above_all(a),
        "more left than was",
    ),
    F(
        "difference_large",
        "A difference above the largest amount",
        lambda a: _cued(a, "difference") and _above_all(a),
        "a difference above both sides",
    ),
    F(
        "average_large",
        "For one of many more than the largest amount",
        lambda a: _cued(a, "average") and _above_all(a),
        "{value} for each is too much",
    ),
    # How it is written: what is asked at school comes out round.
    F("digits", "Significant digits, 8 at most", lambda a: digits(a.value), "{value}, with many digits"),
    F(
        "digits_above",
        "Significant digits beyond the most of a number of the text",
        lambda a: max(digits(a.value) - max(map(digits, a.question.values), default=1), 0),
        "{value} has more digits than the numbers of the text",
    ),
    F("denominator", "Logarithm of the denominator", lambda a: _denominator(a.value), "{value}, no simple fraction"),
    F("numerator", "Logarithm of 1 plus the numerator", lambda a: _numerator(a.value)),
    F("round", "A multiple of 10 but 0", lambda a: a.value != 0 and a.value % 10 == 0),
    # The way to it.
    F(
        "negative_step",
        "A negative intermediate result",
        lambda a: any(v < 0 for v in a.inner_results),
        "a negative step",
    ),
    F("zero_step", "An intermediate result of 0", lambda a: 0 in a.inner_results, "a step that gives 0"),
    F("one_step", "An intermediate result of 1", lambda a: 1 in a.inner_results),
    F(
        "uneven_step",
        "An inner division of whole numbers that leaves a rest",
        lambda a: any(map(_is_uneven, a.steps[:-1])),
        "a division that leaves a rest",
    ),
    F(
        "uneven_last",
        "The same as the last operation",
        lambda a: any(map(_is_uneven, a.steps[-1:])),
        "a division that leaves a rest",
    ),
    F(
        "step_decimals",
        "Most decimals of an intermediate result, 5 at most, as a share of 4",
        lambda a: max(map(decimals, a.inner_results), default=0) / 4,
        "a step with many decimals",
    ),
    F("step_digits", "Most significant digits of an intermediate result", lambda a: _most(digits, a)),
    F("step_denominator", "The largest denominator of one, as above", lambda a: _most(_denominator, a)),
    F("step_numerator", "The largest numerator of one, as above", lambda a: _most(_numerator, a)),
    F(
        "same_operands",
        "a - a or a / a",
        lambda a: any(s[0] in "-/" and s[1] == s[2] for s in a.steps),
        "a number against itself",
    ),
    F(
        "by_one",
        "Multiplied or divided by 1",
        lambda a: any((s[0] in "*/" and s[2] == 1) or (s[0] == "*" and s[1] == 1) for s in a.steps),
        "multiplied or divided by 1",
    ),
    F(
        "small_by_large",
        "A smaller number divided by a larger one where no share is asked for",
        lambda a: not _asks(a, "share") and any(s[0] == "/" and abs(s[1]) < abs(s[2]) for s in a.steps),
        "a small number divided by a large one",
    ),
    F("unused_any", "Whether a number of the text is not used", lambda a: bool(a.unused), "not all numbers used"),
    F("unused_amounts", "Amounts that are not used", lambda a: _unused(a, False), "not all numbers used"),
    F("unused_ratios", "Shares and multiples that are not used", lambda a: _unused(a, True), "a share is not used"),
    F("used_twice", "Numbers used again", lambda a: len(a.slots) - len(set(a.slots)), "a number used twice"),
    F("constants", "Constants", lambda a: a.num_constants, "a number that is not in the text"),
    F("operators", "Operations", lambda a: len(a.steps)),
    F("depth", "Depth of the tree", lambda a: a.best.expression.depth),
    F("inversions", "Neighbouring numbers against the order of the text, as a share", _inversions),
    F("power", "Powers", lambda a: any(s[0] == "^" for s in a.steps)),
    # Units.
    F("clashes", "Sums and differences of different units", lambda a: a.dimensions.clashes, "different units added"),
    F(
        "shares_added",
        "Sums and differences of a share and an amount",
        lambda a: a.dimensions.shares_added,
        "a share added to an amount",
    ),
    F(
        "squares",
        "Products of two amounts of one unit, no lengths",
        lambda a: a.dimensions.squares,
        "a unit times itself",
    ),
    F("unit_differs", "In another unit than is asked for", _differs_in_unit, "in another unit than {unit}"),
    F(
        "unit_of_share",
        "An amount where a share or multiple is asked for",
        lambda a: bool(a.dimensions.unit) and _asks(a, "share", "times"),
        "an amount and no share",
    ),
    F(
        "ratio_for_amount",
        "A share or multiple where an amount is asked for",
        lambda a: a.dimensions.unit == RATIO and _asks(a, "counted", "age", "days", *MEASURES),
        "a share and no amount",
    ),
    # The numbers against the question.
    F("no_operation", "A number without an operation", lambda a: not a.steps),
    F("lone_asked", "It, with how much its clause is asked about", _lone_asked),
    F(
        "used_asked",
        "Mean of how much the clauses of used numbers are asked about",
        lambda a: _mean(a, a.question.asked),
    ),
    F(
        "unused_asked",
        "Numbers not used, by how much their clauses are asked about",
        lambda a: sum(a.question.asked[index] for index in a.unused),
        "a number that is asked about is not used",
    ),
    F(
        "used_unrelated",
        "Numbers used, by how little their clauses have in common with any other",
        lambda a: sum(1 - a.question.related[index] for index in set(a.slots)),
        "a number used that has nothing to do with the others",
    ),
    F(
        "unused_related",
        "Numbers not used, by how much their clauses have in common with another",
        lambda a: sum(a.question.related[index] for index in a.unused),
        "not all numbers used",
    ),
    # The last operation against the question.
    F("minus_last", "The last operation is a difference", lambda a: a.last_operator == "-"),
    F("plus_last", "It is a sum", lambda a: a.last_operator == "+"),
    F("left_by_sum", "A sum where a rest is asked for", lambda a: _cued(a, "left") and a.last_operator == "+"),
    F("total_by_difference", "A difference where a total is", lambda a: _cued(a, "total") and a.last_operator == "-"),
    F(
        "share_by_product",
        "A product or sum where a share is asked for",
        lambda a: _asks(a, "share") and a.last_operator in ("*", "+", "^"),
    ),
)
