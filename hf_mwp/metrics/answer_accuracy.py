"""Answer accuracy as an `evaluate.Metric`."""

import datasets
import evaluate

from ..expressions import Expression, ExpressionError
from ..problems import answer_value
from .accuracy import LEVELS
from .matching import answers_match


_DESCRIPTION = "Share of math word problems whose predicted equation has the value of the reference."
_INPUTS = """
Args:
    predictions (`list` of `str`): predicted equations or numbers in infix notation, numbers put in ("4+2", "80%*50").
        An empty string (no answer) and whatever has no value (division by zero, garbage) count as wrong.
    references (`list` of `str`): with `answer_match="annotated"` the annotated answers as the data set writes them
        ("6", "((7)/(4))", "10%", "9 (apples)"); with `answer_match="equation_value"` the target equations.
    answer_match (`str`, defaults to "annotated"): "annotated" or "equation_value"; see `hf_mwp.metrics.answers_match`.
    tolerance (`float`, defaults to 1e-4): with "annotated" relative, for answers that are no whole numbers, and at
        most half a unit of the last digit written; whole numbers must be equal. Absolute with "equation_value".
    levels (`list` of `str`, *optional*): level of complexity of each problem ("low", "medium", "high").
Returns:
    `answer_accuracy`, between 0 and 1, and `answer_accuracy_low` and so on for the levels that occur.
"""


class AnswerAccuracy(evaluate.Metric):
    """
    Answer ("value") accuracy of math word problem solvers, for use with and without a network.

    Purpose: the figure the literature compares. The rule of record is the annotated answer;
    `answer_match="equation_value"` compares with the value of the target equation, as earlier
    programs do ([`answers_match`]).

    Inputs of `compute`: `predictions` and `references`, strings; see `inputs_description`.

    Examples:

    ```python
    >>> from hf_mwp.metrics import AnswerAccuracy
    >>> AnswerAccuracy().compute(predictions=["4+2", "7/4", ""], references=["6", "((7)/(4))", "9 (apples)"])
    {'answer_accuracy': 0.6666666666666666}
    ```
    """

    def _info(self):
        return describe_metric(_DESCRIPTION, _INPUTS)

    def _compute(self, predictions, references, answer_match="annotated", tolerance=1e-4, levels=None):
        if not predictions:
            raise ValueError("There is nothing to score: `predictions` is empty.")
        if levels is not None and len(levels) != len(predictions):
            raise ValueError(f"`levels` has {len(levels)} entries for {len(predictions)} predictions.")
        correct = []
        for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
            answer = _reference(reference, answer_match, row)
            correct.append(answers_match(_value(prediction), answer, answer_match=answer_match, tolerance=tolerance))
        result = {"answer_accuracy": sum(correct) / len(correct)}
        for level in LEVELS if levels else ():
            part = [right for right, of in zip(correct, levels, strict=True) if of == level]
            if part:
                result[f"answer_accuracy_{level}"] = sum(part) / len(part)
        return result


def describe_metric(description: str, inputs: str) -> evaluate.MetricInfo:
    """Return the `MetricInfo` of a metric whose predictions and references are strings."""
    features = datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")})
    return evaluate.MetricInfo(description=description, citation="", inputs_description=inputs, features=features)


def _value(prediction):
    try:
        return Expression.from_infix(prediction).evaluate()
    except ExpressionError:
        return None


def _reference(reference, answer_match, row):
    if answer_match == "equation_value":
        try:
            return Expression.from_infix(reference).evaluate()
        except ExpressionError as error:
            raise ValueError(f"References, row {row}: the equation {reference!r} has no value ({error}).") from error
    if answer_value(reference) is None:
        raise ValueError(f"References, row {row}: no number in the annotated answer {reference!r} that can be read.")
    return reference
