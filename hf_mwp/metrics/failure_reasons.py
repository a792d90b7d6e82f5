"""Why a prediction is wrong, in one word."""

from collections.abc import Iterator

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
    The most specific difference between a predicted equation and its target.

    Args:
        prediction ([`Expression`]): The predicted tree, with slots (`N0`) for the numbers of the text.
        target ([`Expression`]): The target tree, with slots.

    Returns:
        `str`: a key of `FAILURE_REASONS`. Equal trees give `"label_conflict"`: the function is asked about wrong
        answers only.

    Examples:

    ```python
    >>> failure_reason(Expression.from_infix("N0-N1"), Expression.from_infix("N0+N1"))
    'wrong_operator'
    ```
    """
    if prediction == target:
        return "label_conflict"
    if prediction.num_operators != target.num_operators:
        return "missing_step" if prediction.num_operators < target.num_operators else "extra_step"
    pairs = list(_aligned(prediction, target))
    if all(ours is not None for ours, _ in pairs):
        different = [(ours, theirs) for ours, theirs in pairs if ours.token != theirs.token]
        leaves = [ours.is_leaf for ours, _ in different]
        if all(leaves):
            from_text = all(ours.is_slot and theirs.is_slot for ours, theirs in different)
            return _swap(prediction, target) or ("wrong_number" if from_text else "wrong_constant")
        if not any(leaves):
            return "wrong_operator"
    return _swap(prediction, target) or "other_equation"


def _aligned(prediction: Expression | None, target: Expression | None) -> Iterator[tuple]:
    """Pairs of nodes in the same place; `(None, None)` where one tree ends and the other goes on."""
    stack = [(prediction, target)]
    while stack:
        ours, theirs = stack.pop()
        if ours.is_leaf != theirs.is_leaf:
            yield None, None
            continue
        yield ours, theirs
        if not ours.is_leaf:
            stack += [(ours.right, theirs.right), (ours.left, theirs.left)]


def _swap(prediction: Expression, target: Expression) -> str | None:
    return "swapped_operands" if _unordered(prediction) == _unordered(target) else None


def _unordered(expression: Expression) -> str:
    """A text that is equal for trees which differ in the order of operands only, whatever the operator."""
    parts: list[str] = []
    for token in reversed(expression.to_prefix()):
        if token in OPERATORS:
            parts.append(f"({token} {' '.join(sorted((parts.pop(), parts.pop())))})")
        else:
            parts.append(token)
    return parts[0]
