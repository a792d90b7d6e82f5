"""Rules that decide whether a predicted answer or equation is correct."""

import math
from fractions import Fraction

from ..expressions import Expression
from ..problems import answer_half_unit, answer_value


ANSWER_MATCHES = ("annotated", "equation_value")
# Relative error of floating-point powers and of answers computed in double precision (absolute below 1).
ROUNDING = Fraction(1, 10**9)


def answers_match(
    prediction: Fraction | float | None,
    answer: str | Fraction | float,
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

    Returns:
        `bool`: whether prediction and answer match. Fractions are compared exactly.

    Raises:
        ValueError: `answer_match` is unknown, or `answer` is not a finite number.

    Examples:

    ```python
    >>> from fractions import Fraction
    >>> answers_match(Fraction(1, 3), "0.33333")
    True
    >>> answers_match(Fraction("12345.7"), "12345.6")
    False
    >>> answers_match(Fraction(100001), "100000")
    False
    ```
    """
    if answer_match not in ANSWER_MATCHES:
        raise ValueError(f"`answer_match` must be one of {', '.join(ANSWER_MATCHES)}, not {answer_match!r}.")
    target = _exact(answer_value(answer) if isinstance(answer, str) else answer)
    if target is None:
        raise ValueError(f"`answer` must be a finite number, not {answer!r}.")
    value = _exact(prediction)
    if value is None:
        return False
    difference = abs(value - target)
    limit = Fraction(str(tolerance))
    if answer_match == "equation_value":
        return difference < limit
    if target.denominator == 1:
        return difference <= (ROUNDING * max(abs(target), 1) if isinstance(prediction, float) else 0)
    half_unit = answer_half_unit(answer) if isinstance(answer, str) else None
    limit *= abs(target)
    return difference <= (limit if half_unit is None else min(limit, max(half_unit, ROUNDING * abs(target))))


def equations_match(prediction: Expression, target: Expression, canonical: bool = False) -> bool:
    """
    Return whether two expressions are the same equation.

    Args:
        prediction ([`Expression`]), target ([`Expression`]): Trees with numbers in place of slots (`Expression.bind`),
            so that equal numbers of a text are interchangeable.
        canonical (`bool`, *optional*, defaults to `False`): Whether to compare canonical forms, so that `4+2` matches
            `2+4`. Papers report the comparison token for token.
    """
    return prediction.canonical() == target.canonical() if canonical else prediction == target


def _exact(value: Fraction | float | None) -> Fraction | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return Fraction(value)
