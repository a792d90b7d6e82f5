"""Answer accuracy and equation accuracy as metrics of the `evaluate` library."""

import inspect

import datasets
import evaluate

from ..expressions import Expression, ExpressionError
from ..problems import answer_value
from .accuracy import LEVELS
from .matching import answers_match, equations_match


class _TextMetric(evaluate.Metric):
    """Base class of metrics whose predictions and references are strings."""

    def _info(self):
        texts = datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")})
        doc = inspect.getdoc(type(self))
        return evaluate.MetricInfo(description=doc, citation="", inputs_description="", features=texts)

    def _compute(self, predictions, references, **options):
        if not predictions:
            raise ValueError("`predictions` is empty. Pass at least one prediction.")
        return self._measure(predictions, references, **options)


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
        levels (`list[str]`, *optional*): Level of complexity of each problem (`"low"`, `"medium"`, `"high"`). If
            passed, the result also contains `answer_accuracy_low` and so on.

    Examples:

    ```python
    >>> from hf_mwp.metrics import AnswerAccuracy
    >>> AnswerAccuracy().compute(predictions=["4+2", "7/4", ""], references=["6", "((7)/(4))", "9 (apples)"])
    {'answer_accuracy': 0.6666666666666666}
    ```
    """

    def _measure(self, predictions, references, answer_match="annotated", tolerance=1e-4, levels=None):
        correct = []
        for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            by_value = answer_match == "equation_value"
            answer = _value(reference) if by_value else reference
            if (answer if by_value else answer_value(reference)) is None:
                raise ValueError(f"`references`, row {row}: {reference!r} has no value.")
            correct.append(answers_match(_value(prediction), answer, answer_match, tolerance))
        result = {"answer_accuracy": sum(correct) / len(correct)}
        for level in LEVELS if levels else ():
            if part := [right for right, of in zip(correct, levels, strict=True) if of == level]:
                result[f"answer_accuracy_{level}"] = sum(part) / len(part)
        return result


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
    >>> from hf_mwp.metrics import EquationAccuracy
    >>> metric = EquationAccuracy()
    >>> metric.compute(predictions=["2+4"], references=["x=4+2"])
    {'equation_accuracy': 0.0}
    >>> metric.compute(predictions=["2+4"], references=["x=4+2"], canonical=True)
    {'equation_accuracy': 1.0}
    ```
    """

    def _measure(self, predictions, references, canonical=False):
        correct = 0
        for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            try:
                target = Expression.from_infix(reference)
            except ExpressionError as error:
                raise ValueError(f"`references`, row {row}: {reference!r} is not an equation ({error}).") from error
            try:
                correct += equations_match(Expression.from_infix(prediction), target, canonical)
            except ExpressionError:
                continue
        return {"equation_accuracy": correct / len(predictions)}


def _value(equation):
    try:
        return Expression.from_infix(equation).evaluate()
    except ExpressionError:
        return None
