"""Rules by which a predicted answer or equation counts as right."""

import math
from fractions import Fraction

from ..expressions import Expression
from ..problems import answer_half_unit, answer_value


ANSWER_MATCHES = ("annotated", "equation_value")
# Relative, and absolute at 0: what rounded powers may differ by, and answers that were computed in doubles.
ROUNDING = Fraction(1, 10**9)


def answers_match(
    prediction: Fraction | float | None,
    answer: str | Fraction | float,
    answer_match: str = "annotated",
    tolerance: float = 1e-4,
) -> bool:
    """
    Return whether a predicted value is the right answer.

    Two rules are in use. They differ in the value compared with and in the tolerance:

    - `"annotated"` (default): `answer` is the data set's annotated answer, as written or its value `a`, and `p` is the
      prediction. If `a` is a whole number (`20`, also written `880.0` or `100%`), `p` has to be equal to it; floats,
      which only powers give, up to 1e-9 of it. Of another `a`, `|p - a| <= tolerance * |a|`, and if the answer is
      given as it is written, not more than half a unit of its last digit ([`~problems.answer_half_unit`]) either: 0.05
      for `12345.6`; that unit is at least 1e-9 of `a`, since some data sets write out all digits of a double. A
      relative tolerance neither asks for more digits than annotators write nor lets any map scale pass for 1/6000000.
    - `"equation_value"`: `answer` is the value of the *target equation*, and the prediction is right when
      `|p - a| < tolerance`, absolute. This is what the programs of GTS, MWPToolkit and MWP-BERT compute. It never
      notices a wrong annotation, and is loose for small values and strict for large ones.

    Args:
        prediction (`Fraction`, `float` or `None`): Value of the predicted expression. `None` (no answer), infinities
            and NaN are wrong.
        answer (`str`, `Fraction` or `float`): Expected answer, see the rules.
        answer_match (`str`, *optional*, defaults to `"annotated"`): `"annotated"` or `"equation_value"`.
        tolerance (`float`, *optional*, defaults to 1e-4): See the rules.

    Returns:
        `bool`: whether the two match. Fractions are compared exactly, however large.

    Raises:
        ValueError: if `answer_match` is unknown, or `answer` is not a finite number or has none that can be read.

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
        raise ValueError(f"The rule {answer_match!r} is unknown; use one of {', '.join(map(repr, ANSWER_MATCHES))}.")
    target = _exact(answer_value(answer) if isinstance(answer, str) else answer)
    if target is None:
        raise ValueError(f"The answer to compare with must be a finite number, not {answer!r}.")
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
        prediction ([`Expression`]), target ([`Expression`]): The trees to compare, both with the numbers put in
            (`Expression.bind`), so that two mentions of the same number in a text are not told apart.
        canonical (`bool`, *optional*, defaults to `False`): `False` compares token for token (equation accuracy as the
            literature reports it); `True` compares canonical forms, so that `4+2` is `2+4`.
    """
    if canonical:
        return prediction.canonical() == target.canonical()
    return prediction == target


def _exact(value: Fraction | float | None) -> Fraction | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return Fraction(value)
