"""Features of candidate answers for the plausibility re-ranker."""

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.expressions.evaluation import Number, Step
from hf_mwp.runtime.problems import MathWordProblem

from .candidate_answer import MOST_DECIMALS, CandidateAnswer, candidate_answers, decimals, digits, is_whole
from .question import RATIO, Question


FEATURE_LIST = "3"  # version of the features and word lists; increase it with each change

MEASURES = ("money", "length", "area", "volume", "weight", "time")


@dataclass(frozen=True)
class Feature:
    """A feature of a candidate answer."""

    name: str  # also the key of its weight
    measure: Callable[[CandidateAnswer], float]
    meaning: str  # description of the feature
    complaint: str = ""  # template for the reason that is shown to users against an answer
    worse: str = "larger"  # or "smaller": which values of the feature count against an answer


def feature_row(answer: CandidateAnswer) -> list[float]:
    """Compute the features of an answer, in the order of [`FEATURES`]."""
    return [float(feature.measure(answer)) for feature in FEATURES]


class DescribedAnswer(NamedTuple):
    """A candidate answer with its features."""

    answer: CandidateAnswer
    features: list[float]  # in the order of [`FEATURES`]


def describe_answers(problem: MathWordProblem, trees: Sequence[tuple[Expression, float]]) -> list[DescribedAnswer]:
    """Return the answers of a beam (trees over number slots with log probabilities, best first) with their features,
    in the order of the best tree of each."""
    if not trees:  # the text may be too long
        return []
    answers = candidate_answers(Question.read(problem, trees), trees)
    return [DescribedAnswer(answer, feature_row(answer)) for answer in answers]


def _asks(answer: CandidateAnswer, *kinds: str) -> bool:
    return not answer.question.kinds.isdisjoint(kinds)


def _above_all(answer: CandidateAnswer) -> bool:
    return answer.value > max(answer.question.amounts)


def _orders(larger: float, smaller: float) -> float:
    """Return the decimal logarithm of `larger / smaller`, clipped to between 0 and 4; 0 unless both are positive."""
    if not larger > smaller > 0:
        return 0.0
    # A quotient of two numbers with hundreds of digits may be too large for a float.
    return 4.0 if larger > 10**4 * smaller else math.log10(larger / smaller)


def _denominator(number: Number) -> float:
    """Return the decimal logarithm of the denominator, at most 6; 6 for a rounded number."""
    return min(math.log10(number.denominator), 6.0) if isinstance(number, Fraction) else 6.0


def _numerator(number: Number) -> float:
    """Return the decimal logarithm of 1 plus the numerator, at most 12. The numerator of a float is the float."""
    numerator = number.numerator if isinstance(number, Fraction) else number
    return min(math.log10(1 + abs(numerator)), 12.0)


def _select(values: Sequence[Any], indices: Iterable[int]) -> list[Any]:
    return [values[index] for index in indices]


def _unused_ratios(answer: CandidateAnswer) -> int:
    return _select(answer.question.units, answer.unused).count(RATIO)


def _most(measure: Callable[[Number], float], answer: CandidateAnswer) -> float:
    return max(map(measure, answer.inner_results), default=0)


def _is_uneven(step: Step) -> bool:
    return step.operator == "/" and is_whole(step.left) and is_whole(step.right) and not is_whole(step.result)


def _has_same_operands(step: Step) -> bool:
    return step.operator in "-/" and step.left == step.right


def _is_by_one(step: Step) -> bool:
    return (step.operator in "*/" and step.right == 1) or (step.operator == "*" and step.left == 1)


def _is_small_by_large(step: Step) -> bool:
    return step.operator == "/" and abs(step.left) < abs(step.right)


def _asked(answer: CandidateAnswer) -> float:
    """Return the mean overlap between the question and the clauses of the used numbers; 0 without numbers."""
    overlaps = _select(answer.question.asked, set(answer.slots))
    return sum(overlaps) / len(overlaps) if overlaps else 0.0


def _used_unrelated(answer: CandidateAnswer) -> float:
    return sum(1 - overlap for overlap in _select(answer.question.related, set(answer.slots)))


def _inversions(answer: CandidateAnswer) -> float:
    """Return the share of the pairs of successive numbers that have the order of the text reversed."""
    pairs = list(pairwise(answer.slots))
    inversions = sum(first > second for first, second in pairs)
    return inversions / max(len(pairs), 1)


# `a` is the answer.
_MEASURES: Mapping[str, Callable[[CandidateAnswer], float]] = {
    # Probabilities of the solver.
    "log_mass": lambda a: a.log_mass,
    "num_trees": lambda a: math.log(len(a.trees)),
    "rank": lambda a: math.log(1 + a.best.rank),
    # The value compared with the kind of question.
    "negative": lambda a: a.value < 0,
    "zero": lambda a: a.value == 0,
    "not_whole_counted": lambda a: _asks(a, "counted", "age") and not is_whole(a.value),
    "not_whole_days": lambda a: _asks(a, "days") and not is_whole(a.value),
    "not_whole_measure": lambda a: _asks(a, *MEASURES) and not is_whole(a.value),
    "not_whole_other": lambda a: not a.question.kinds and not is_whole(a.value),
    "not_whole_of_whole": lambda a: not is_whole(a.value) and a.question.all_whole and not _asks(a, "share"),
    "inexact_measure": lambda a: _asks(a, *MEASURES) and decimals(a.value) > MOST_DECIMALS,
    "inexact_share": lambda a: _asks(a, "share") and decimals(a.value) > MOST_DECIMALS,
    "inexact_other": lambda a: not _asks(a, "share", *MEASURES) and decimals(a.value) > MOST_DECIMALS,
    "decimals": lambda a: min(decimals(a.value), 4) / 4,
    "money_decimals": lambda a: _asks(a, "money") and decimals(a.value) > 2,
    "share_above_one": lambda a: _asks(a, "share") and a.value > 1,
    "share_one": lambda a: _asks(a, "share") and a.value == 1,
    "times_below_one": lambda a: _asks(a, "times") and a.value < 1,
    "below_one": lambda a: not _asks(a, "share", "times") and 0 < a.value < 1,
    "one": lambda a: a.value == 1,
    # The value compared with the numbers in the text.
    "in_text": lambda a: a.value in a.question.values,
    "in_text_used": lambda a: a.value in _select(a.question.values, a.slots),
    "orders_above": lambda a: _orders(a.value, max(a.question.amounts)),
    "orders_below": lambda a: _orders(min(a.question.amounts), a.value),
    "total_small": lambda a: "total" in a.question.cues and not _above_all(a),
    "left_large": lambda a: "left" in a.question.cues and _above_all(a),
    "difference_large": lambda a: "difference" in a.question.cues and _above_all(a),
    "average_large": lambda a: "average" in a.question.cues and _above_all(a),
    # Digits of the value: answers to school problems are mostly round.
    "digits": lambda a: digits(a.value),
    "digits_above": lambda a: max(digits(a.value) - max(map(digits, a.question.values), default=1), 0),
    "denominator": lambda a: _denominator(a.value),
    "numerator": lambda a: _numerator(a.value),
    "round": lambda a: a.value != 0 and a.value % 10 == 0,
    # Steps of the calculation.
    "negative_step": lambda a: min(a.inner_results, default=0) < 0,
    "zero_step": lambda a: 0 in a.inner_results,
    "one_step": lambda a: 1 in a.inner_results,
    "uneven_step": lambda a: any(map(_is_uneven, a.steps[:-1])),
    "uneven_last": lambda a: any(map(_is_uneven, a.steps[-1:])),
    "step_decimals": lambda a: _most(decimals, a) / 4,
    "step_digits": lambda a: _most(digits, a),
    "step_denominator": lambda a: _most(_denominator, a),
    "step_numerator": lambda a: _most(_numerator, a),
    "same_operands": lambda a: any(map(_has_same_operands, a.steps)),
    "by_one": lambda a: any(map(_is_by_one, a.steps)),
    "small_by_large": lambda a: not _asks(a, "share") and any(map(_is_small_by_large, a.steps)),
    "unused_any": lambda a: bool(a.unused),
    "unused_amounts": lambda a: len(a.unused) - _unused_ratios(a),
    "unused_ratios": _unused_ratios,
    "used_twice": lambda a: len(a.slots) - len(set(a.slots)),
    "constants": lambda a: len(a.postfix) - len(a.slots) - len(a.steps),
    "operators": lambda a: len(a.steps),
    "depth": lambda a: a.best.expression.depth,
    "inversions": _inversions,
    "power": lambda a: "^" in a.postfix,
    # Units.
    "clashes": lambda a: a.dimensions.clashes,
    "shares_added": lambda a: a.dimensions.shares_added,
    "squares": lambda a: a.dimensions.squares,
    "unit_differs": lambda a: bool(a.dimensions.unit and a.question.unit) and a.dimensions.unit != a.question.unit,
    "unit_of_share": lambda a: bool(a.dimensions.unit) and _asks(a, "share", "times"),
    "ratio_for_amount": lambda a: a.dimensions.unit == RATIO and _asks(a, "counted", "age", "days", *MEASURES),
    # The used numbers compared with the question.
    "no_operation": lambda a: not a.steps,
    "lone_asked": lambda a: 0.0 if a.steps else _asked(a),
    "used_asked": _asked,
    "unused_asked": lambda a: sum(_select(a.question.asked, a.unused)),
    "used_unrelated": _used_unrelated,
    "unused_related": lambda a: sum(_select(a.question.related, a.unused)),
    # The last operation compared with the question.
    "minus_last": lambda a: a.last_operator == "-",
    "plus_last": lambda a: a.last_operator == "+",
    "left_by_sum": lambda a: "left" in a.question.cues and a.last_operator == "+",
    "total_by_difference": lambda a: "total" in a.question.cues and a.last_operator == "-",
    "share_by_product": lambda a: _asks(a, "share") and a.last_operator in ("*", "+", "^"),
}
_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FEATURES = tuple(Feature(name, measure, *_TEXTS[name]) for name, measure in _MEASURES.items())
