"""When a predicted answer or equation counts as right."""

from __future__ import annotations

import math
from fractions import Fraction

from ..expressions import Expression


RULES = ("annotated", "peers")
ZERO = Fraction(1, 10**9)


def answers_match(
    prediction: Fraction | float | None,
    answer: Fraction | float,
    rule: str = "annotated",
    tolerance: float = 1e-4,
) -> bool:
    """
    Whether a predicted value is the right answer.

    Two rules are in use. They differ in the value compared with and in the tolerance:

    - `"annotated"` (default): `answer` is the value `a` of the data set's annotated answer, and the prediction `p` is
      right when `|p - a| <= tolerance * |a|`; an answer 0 wants `|p| <= 1e-9`, which allows for rounded powers only.
      A relative tolerance neither asks for more digits of a large answer than annotators write nor lets any map scale
      pass for 1/6000000. All equations of Math23k, Ape210k (valid, test) and ASDiv-A that agree with their answers
      within an absolute 1e-4 do so within a relative 1e-4 too.
    - `"peers"`: `answer` is the value of the *target equation*, and the prediction is right when
      `|p - a| < tolerance`, absolute. This is what the programs of GTS, MWPToolkit and MWP-BERT compute. It never
      notices a wrong annotation, and is loose for small values and strict for large ones.

    Args:
        prediction (`Fraction`, `float` or `None`):
            Value of the predicted expression. `None` (no answer), infinities and NaN are wrong.
        answer (`Fraction` or `float`):
            The value compared with, see the rules.
        rule (`str`, *optional*, defaults to `"annotated"`):
            `"annotated"` or `"peers"`.
        tolerance (`float`, *optional*, defaults to 1e-4):
            See the rules.

    Returns:
        `bool`: whether the two match. Fractions are compared exactly, however large.

    Raises:
        ValueError: if `rule` is unknown or `answer` is not a finite number.

    Examples:

    ```python
    >>> from fractions import Fraction
    >>> answers_match(Fraction(1, 3), Fraction("0.33333"))
    True
    >>> answers_match(Fraction(100001), Fraction(100000))
    True
    >>> answers_match(Fraction(100001), Fraction(100000), rule="peers")
    False
    ```
    """
    if rule not in RULES:
        raise ValueError(f"The rule {rule!r} is unknown; use one of {', '.join(map(repr, RULES))}.")
    target = _exact(answer)
    if target is None:
        raise ValueError(f"The answer to compare with must be a finite number, not {answer!r}.")
    value = _exact(prediction)
    if value is None:
        return False
    difference = abs(value - target)
    limit = Fraction(str(tolerance))
    if rule == "peers":
        return difference < limit
    return difference <= (limit * abs(target) if target else ZERO)


def equations_match(prediction: Expression, target: Expression, canonical: bool = False) -> bool:
    """
    Whether two expressions are the same equation.

    Args:
        prediction ([`Expression`]), target ([`Expression`]):
            The trees to compare, both with the numbers put in (`Expression.bind`), so that two mentions of the same
            number in a text are not told apart.
        canonical (`bool`, *optional*, defaults to `False`):
            `False` compares token for token (equation accuracy as the literature reports it); `True` compares
            canonical forms, so that `4+2` is `2+4`.
    """
    if canonical:
        return prediction.canonical() == target.canonical()
    return prediction == target


def _exact(value: Fraction | float | None) -> Fraction | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return Fraction(value)
