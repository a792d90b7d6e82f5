"""Reasons why predictions are wrong."""

from ..expressions import OPERATORS, Expression


FAILURE_REASONS = {
    "no_numbers": "the text has no number to calculate with, or cannot be read, so that it gets no answer",
    "no_prediction": "the solver gave no finished tree",
    "evaluation_error": "the predicted tree has no value: division by zero, too large, not real",
    "label_conflict": "the predicted equation is the target, but its value is not the annotated answer",
    "wrong_number": "right operators in the right places, another number of the text in a leaf",
    "wrong_constant": "right operators in the right places, a constant missing, invented or confused",
    "wrong_operator": "right leaves in the right places, another operator",
    "swapped_operands": "the target but for the order of the operands of - / ^",
    "missing_step": "fewer operators than the target",
    "extra_step": "more operators than the target",
    "other_equation": "as many operators as the target, but another equation",
    "wrong_value": "wrong, and there is no target equation to compare with",
    "unlabelled": "neither an annotated answer nor a target equation: cannot be judged, and is not counted",
}


def failure_reason(prediction: Expression, target: Expression) -> str:
    """
    Return the key of `FAILURE_REASONS` for the most specific difference between a wrong prediction and its target,
    both with slots (`N0`) for the numbers of the text. Equal trees give `"label_conflict"`; trees of another shape are
    compared in canonical form.

    Examples:

    ```python
    >>> failure_reason(Expression.from_infix("N0-N1"), Expression.from_infix("N0+N1"))
    'wrong_operator'
    ```
    """
    if prediction == target:
        return "label_conflict"
    reason = _difference(prediction, target)
    return _difference(prediction.canonical(), target.canonical()) if reason == "other_equation" else reason


def _difference(prediction: Expression, target: Expression) -> str:
    if prediction.num_operators != target.num_operators:
        return "missing_step" if prediction.num_operators < target.num_operators else "extra_step"
    reason = "other_equation"
    pairs = list(zip(prediction.to_prefix(), target.to_prefix(), strict=True))
    # The trees have the same shape where operators meet operators.
    if all((ours in OPERATORS) == (theirs in OPERATORS) for ours, theirs in pairs):
        different = [pair for pair in pairs if pair[0] != pair[1]]
        leaves = [ours not in OPERATORS for ours, _ in different]
        if all(leaves):
            from_text = all(token.startswith("N") for pair in different for token in pair)
            reason = "wrong_number" if from_text else "wrong_constant"
        elif not any(leaves):
            return "wrong_operator"
    return "swapped_operands" if _unordered(prediction) == _unordered(target) else reason


def _unordered(expression: Expression) -> str:
    """Return a text that is equal for trees that differ only in the order of operands, of any operator."""
    parts: list[str] = []
    for token in reversed(expression.to_prefix()):
        if token in OPERATORS:
            parts.append(f"({token} {' '.join(sorted((parts.pop(), parts.pop())))})")
        else:
            parts.append(token)
    return parts[0]
