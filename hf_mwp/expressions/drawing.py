"""An expression tree as text for terminals."""

from .expression import Expression


def draw(expression: Expression) -> str:
    """
    Draw a tree with box characters, one node a line, the left operand above the right one.

    Args:
        expression ([`Expression`]): The tree; with slots bound or not.

    Returns:
        `str`: lines joined by newlines, without one at the end.

    Example:

    ```python
    >>> print(draw(Expression.from_infix("(70+6)/4")))
    /
    ├── +
    │   ├── 70
    │   └── 6
    └── 4
    ```
    """
    lines = []
    todo = [(expression, "", "")]
    while todo:
        node, lead, indent = todo.pop()
        lines.append(lead + node.token)
        if not node.is_leaf:
            todo.append((node.right, f"{indent}└── ", f"{indent}    "))
            todo.append((node.left, f"{indent}├── ", f"{indent}│   "))
    return "\n".join(lines)
