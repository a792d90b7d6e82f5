"""Rules that decide whether a predicted answer or equation is correct, and why it is wrong."""

import math
from fractions import Fraction
from itertools import chain
from numbers import Real

from hf_mwp.runtime.expressions import OPERATORS, Expression
from hf_mwp.runtime.problems import answer_half_unit, answer_value
from hf_mwp.utils.checked_types import checked


ANSWER_MATCHES = ("annotated", "equation_value")
# Relative error of floating-point powers and of answers computed in double precision (absolute below 1).
ROUNDING = Fraction(1, 10**9)

FAILURE_REASONS = {
    "no_numbers": "no answer, because the text has no number to calculate with or cannot be read",
    "no_prediction": "the solver returned no complete tree",
    "evaluation_error": "the predicted tree has no value: division by zero, too large, not real",
    "label_conflict": "the predicted equation is the target, but its value is not the annotated answer",
    "wrong_number": "all operators correct, but a wrong number from the text in a leaf",
    "wrong_constant": "all operators correct, but a constant is missing, superfluous or wrong",
    "wrong_operator": "all leaves correct, but a wrong operator",
    "swapped_operands": "differs from the target only in the order of the operands of - / ^",
    "missing_step": "fewer operators than the target",
    "extra_step": "more operators than the target",
    "other_equation": "same number of operators as the target, but a different equation",
    "wrong_value": "wrong value, and there is no target equation to compare with",
    "unlabelled": "not counted, because there is neither an annotated answer nor a target equation",
}


@checked
def answers_match(
    prediction: Real | None,
    answer: str | Real,
    answer_match: str = "annotated",
    tolerance: float = 1e-4,
) -> bool:
    """
    Return whether a predicted value matches the reference answer.

    The two rules differ in the reference `a` and in the tolerance for the prediction `p`:

    - `"annotated"` (default): `a` is the annotated answer, as text or as a value. If `a` is an integer (`20`, also
      `880.0` or `100%`), `p` must be equal to `a`. A float `p`, which only powers have as value, may differ by 1e-9.
      For any other `a`, `|p - a| <= tolerance * |a|` is required. If `a` is a text, the difference must also be at
      most half a unit of its last digit ([`~problems.answer_half_unit`]; 0.05 for `12345.6`). This limit is at least
      1e-9 of `a`, since some datasets contain all digits of a double. A relative tolerance is suitable both for
      rounded answers and for map scales such as 1/6000000.
    - `"equation_value"`: `a` is the value of the target equation, and `|p - a| < tolerance` is required, as in the
      code of GTS, MWPToolkit and MWP-BERT. The rule ignores wrong annotations. The absolute tolerance is loose for
      small values and strict for large values.

    Args:
        prediction (`Fraction`, `float` or `None`): Value of the predicted expression. `None`, infinities and NaN never
            match.
        answer (`str`, `Fraction` or `float`): Reference answer.
        answer_match (`str`, *optional*, defaults to `"annotated"`): `"annotated"` or `"equation_value"`.
        tolerance (`float`, *optional*, defaults to 1e-4): Relative (`"annotated"`) or absolute (`"equation_value"`)
            tolerance.

    Raises:
        ValueError: `answer_match` is unknown, or `answer` is not a finite number.

    Examples:

    ```python
    >>> answers_match(Fraction(1, 3), "0.33333")
    True
    >>> answers_match(Fraction("12345.7"), "12345.6")
    False
    ```
    """
    if answer_match not in ANSWER_MATCHES:
        raise ValueError(f"`answer_match` must be one of {', '.join(ANSWER_MATCHES)}, not {answer_match!r}.")
    reference = answer_value(answer) if isinstance(answer, str) else answer
    target = _exact(reference)
    if target is None:
        raise ValueError(f"`answer` must be a finite number, not {answer!r}.")
    value = _exact(prediction)
    if value is None:
        return False
    difference = abs(value - target)
    if answer_match == "equation_value":
        return difference < Fraction(str(tolerance))
    if target.denominator == 1:
        if isinstance(prediction, float):
            return difference <= ROUNDING * max(abs(target), 1)
        return difference == 0
    limit = Fraction(str(tolerance)) * abs(target)
    half_unit = answer_half_unit(answer) if isinstance(answer, str) else None
    if half_unit is not None:
        limit = min(limit, max(half_unit, ROUNDING * abs(target)))
    return difference <= limit


@checked
def equations_match(prediction: Expression, target: Expression, canonical: bool = False) -> bool:
    """
    Return whether two expressions are the same equation.

    Args:
        prediction ([`Expression`]), target ([`Expression`]): Trees with numbers in place of slots (`Expression.bind`),
            so that equal numbers of a text are interchangeable.
        canonical (`bool`, *optional*, defaults to `False`): Whether to compare canonical forms, so that `4+2` matches
            `2+4`. Papers report the comparison token for token.
    """
    if canonical:
        return prediction.canonical() == target.canonical()
    return prediction == target


def _exact(value: Fraction | float | None) -> Fraction | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return Fraction(value)


@checked
def failure_reason(prediction: Expression, target: Expression) -> str:
    """Return the key of `FAILURE_REASONS` for the most specific difference of two trees with number slots (`N0`)."""
    if prediction == target:
        return "label_conflict"
    reason = _difference(prediction, target)
    if reason == "other_equation":
        # Trees of different shape are compared in canonical form.
        reason = _difference(prediction.canonical(), target.canonical())
    return reason


def _difference(prediction: Expression, target: Expression) -> str:
    if prediction.num_operators < target.num_operators:
        return "missing_step"
    if prediction.num_operators > target.num_operators:
        return "extra_step"
    reason = "other_equation"
    pairs = list(zip(prediction.to_prefix(), target.to_prefix(), strict=True))
    if _have_same_shape(pairs):
        different = [pair for pair in pairs if pair[0] != pair[1]]
        are_operators = [predicted in OPERATORS for predicted, _ in different]
        if all(are_operators) and different:
            return "wrong_operator"
        if not any(are_operators):
            from_text = all(token.startswith("N") for token in chain.from_iterable(different))
            reason = "wrong_number" if from_text else "wrong_constant"
    if _unordered(prediction) == _unordered(target):
        return "swapped_operands"
    return reason


def _have_same_shape(pairs: list[tuple[str, str]]) -> bool:
    """Return whether two trees, as pairs of tokens in prefix order, have operators in the same places."""
    return all((predicted in OPERATORS) == (expected in OPERATORS) for predicted, expected in pairs)


def _unordered(expression: Expression) -> str:
    """Return a text form that ignores the order of the operands of all operators."""
    operands: list[str] = []
    for token in reversed(expression.to_prefix()):
        if token in OPERATORS:
            first, second = sorted((operands.pop(), operands.pop()))
            operands.append(f"({token} {first} {second})")
        else:
            operands.append(token)
    return operands[0]
