"""Answers to questions for a percentage: 94% for the share 0.94."""

from .expressions import Expression, ExpressionError
from .numbers.number_form import asks_for
from .problems import MathWordProblem


_ASKS = {
    "zh": "百分之(?:几|多少)|百分(?:率|比)是多少",
    "en": r"\bwhat per ?cent(?:age)?\b|\bby how many per ?cent\b|\bwhat (?:is|was) the percentage\b",
}
_MAX_SHARE = 10  # a larger value is no share


def percent_answer(expression: Expression, problem: MathWordProblem) -> str | None:
    """
    Return the percentage that answers a problem: `"94%"` for 235/250, and also for 235/250*100.

    Args:
        expression ([`Expression`]): Tree with slots.
        problem ([`MathWordProblem`]): Problem.

    Returns:
        `str` or `None`: A percentage with up to four digits, or `None` if the question does not ask for one or the
            equation has no value that is a share.
    """
    if not asks_for(_ASKS[problem.language], problem.text):
        return None
    try:
        value = expression.evaluate(problem.numbers)
    except ExpressionError:
        return None
    # 18/24*100 and 100-30 are in percent.
    if "100" not in expression.to_prefix():
        if not -_MAX_SHARE < value < _MAX_SHARE:
            return None
        value *= 100
    return f"{float(value):.4g}%"
