"""Equation accuracy as an `evaluate.Metric`."""

import evaluate

from ..expressions import Expression, ExpressionError
from .answer_accuracy import describe_metric
from .matching import equations_match


_DESCRIPTION = "Share of math word problems whose predicted equation is the target equation."
_INPUTS = """
Args:
    predictions (`list` of `str`): predicted equations in infix notation, numbers put in ("4+2"); empty for no answer.
    references (`list` of `str`): target equations in infix notation ("x=4+2", "2+4").
    canonical (`bool`, defaults to False): compare canonical forms, where the order of terms is free.
Returns:
    `equation_accuracy`, between 0 and 1.
"""


class EquationAccuracy(evaluate.Metric):
    """
    Equation accuracy of math word problem solvers, for use with and without a network.

    Purpose: the share of problems whose predicted prefix is the target's, token for token; brackets do not count. With
    `canonical=True` two equations that differ in the order of commutative operands are the same.

    Inputs of `compute`: `predictions` and `references`, strings; see `inputs_description`.

    Examples:

    ```python
    >>> from hf_mwp.metrics import EquationAccuracy
    >>> metric = EquationAccuracy()
    >>> metric.compute(predictions=["2+4"], references=["x=4+2"])
    {'equation_accuracy': 0.0}
    >>> metric.compute(predictions=["2+4"], references=["x=4+2"], canonical=True)
    {'equation_accuracy': 1.0}
    ```
    """

    def _info(self):
        return describe_metric(_DESCRIPTION, _INPUTS)

    def _compute(self, predictions, references, canonical=False):
        if not predictions:
            raise ValueError("There is nothing to score: `predictions` is empty.")
        correct = 0
        for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            try:
                target = Expression.from_infix(reference)
            except ExpressionError as error:
                raise ValueError(f"References, row {row}: {reference!r} does not parse ({error}).") from error
            try:
                correct += equations_match(Expression.from_infix(prediction), target, canonical=canonical)
            except ExpressionError:
                continue
        return {"equation_accuracy": correct / len(predictions)}
