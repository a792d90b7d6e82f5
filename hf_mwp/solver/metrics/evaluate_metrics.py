"""Answer accuracy and equation accuracy as metrics of the `evaluate` library."""

import inspect
from statistics import fmean

import datasets
import evaluate

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.problems import answer_value

from .matching import answers_match, equations_match


class _TextMetric(evaluate.Metric):
    """Base class of metrics whose predictions and references are strings."""

    def _info(self):
        texts = datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")})
        doc = inspect.getdoc(type(self))
        return evaluate.MetricInfo(description=doc, citation="", inputs_description="", features=texts)

    def _compute(self, predictions, references, **options):
        if not predictions:
            raise ValueError("`predictions` is empty. Pass at least one prediction.")
        correct = []
        for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            correct.append(self._is_right(row, prediction, reference, **options))
        return {self.figure: fmean(correct)}


class AnswerAccuracy(_TextMetric):
    """
    Answer ("value") accuracy of math word problem solvers: the share of problems whose predicted equation has the
    value of the reference ([`answers_match`]).

    Args:
        predictions (`list[str]`): Predicted equations or numbers in infix notation ("4+2", "80%*50"). Predictions
            without a value (empty, division by zero, invalid) count as wrong.
        references (`list[str]`): With `answer_match="annotated"`, the annotated answers as written in the dataset
            ("6", "((7)/(4))", "10%", "9 (apples)"). With `answer_match="equation_value"`, the target equations.
        answer_match (`str`, *optional*, defaults to `"annotated"`), tolerance (`float`, *optional*, defaults to 1e-4):
            See [`answers_match`].

    Examples:

    ```python
    >>> from hf_mwp.solver.metrics import AnswerAccuracy
    >>> AnswerAccuracy().compute(predictions=["4+2", "7/4", ""], references=["6", "((7)/(4))", "9 (apples)"])
    {'answer_accuracy': 0.6666666666666666}
    ```
    """

    figure = "answer_accuracy"

    def _is_right(self, row, prediction, reference, answer_match="annotated", tolerance=1e-4):
        if answer_match == "equation_value":
            answer = value = _value(reference)
        else:
            answer = reference
            value = answer_value(reference)
        if value is None:
            raise ValueError(f"`references`, row {row}: {reference!r} has no value.")
        return answers_match(_value(prediction), answer, answer_match, tolerance)


class EquationAccuracy(_TextMetric):
    """
    Equation accuracy of math word problem solvers: the share of problems whose predicted equation equals the target
    token for token in prefix notation. Redundant brackets make no difference.

    Args:
        predictions (`list[str]`), references (`list[str]`): Predicted and target equations in infix notation ("4+2",
            "x=4+2"). Predictions may be empty.
        canonical (`bool`, *optional*, defaults to `False`): Whether to compare canonical forms, which ignore the order
            of terms.

    Examples:

    ```python
    >>> from hf_mwp.solver.metrics import EquationAccuracy
    >>> EquationAccuracy().compute(predictions=["2+4"], references=["x=4+2"], canonical=True)
    {'equation_accuracy': 1.0}
    ```
    """

    figure = "equation_accuracy"

    def _is_right(self, row, prediction, reference, canonical=False):
        try:
            target = Expression.from_infix(reference)
        except ExpressionError as error:
            raise ValueError(f"`references`, row {row}: {reference!r} is not an equation ({error}).") from error
        try:
            return equations_match(Expression.from_infix(prediction), target, canonical)
        except ExpressionError:
            return False


def _value(equation):
    try:
        return Expression.from_infix(equation).evaluate()
    except ExpressionError:
        return None
