"""Classification of wrong predictions by the reason of the failure."""

from ..expressions import OPERATORS, Expression


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


def failure_reason(prediction: Expression, target: Expression) -> str:
    """
    Return the key of `FAILURE_REASONS` for the most specific difference between a wrong prediction and its target,
    both with slots (`N0`) for the numbers of the text. Returns `"label_conflict"` for equal trees. Trees of different
    shape are compared in canonical form.

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
    # The trees have the same shape if both have operators at the same positions.
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
    """Return a text form that ignores the order of the operands of all operators."""
    parts: list[str] = []
    for token in reversed(expression.to_prefix()):
        if token in OPERATORS:
            parts.append(f"({token} {' '.join(sorted((parts.pop(), parts.pop())))})")
        else:
            parts.append(token)
    return parts[0]
