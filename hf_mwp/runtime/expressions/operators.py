"""Operators, and conversion of trees to infix texts with the minimum number of brackets."""

from collections.abc import Callable, Sequence
from typing import TypeVar


OPERATORS = ("+", "-", "*", "/", "^")

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 4}
# A sign binds tighter than a product and looser than a power: -2^2 is 0-2^2, 2*-3 is 2*(0-3).
SIGN_PRECEDENCE = 3

COMMUTATIVE = frozenset("+*")
RIGHT_ASSOCIATIVE = frozenset("^")

# Ape210k writes powers as `**` and, rarely, ratios as `:`.
OPERATOR_SPELLINGS = {"+": "+", "-": "-", "*": "*", "/": "/", "^": "^", "**": "^", ":": "/"}
BRACKETS = {"(": ")", "[": "]", "{": "}"}
MARK = "\0"  # Marks the place of a token in an infix text.

Value = TypeVar("Value")


def fold_postfix(
    tokens: Sequence[str], leaf: Callable[[str], Value], combine: Callable[[str, Value, Value], Value]
) -> Value:
    """Compute a value of a postfix tree bottom up: `leaf(token)`, or `combine(operator, left, right)` of operands."""
    stack = []
    for token in tokens:
        if token in PRECEDENCE:
            right = stack.pop()
            left = stack.pop()
            stack.append(combine(token, left, right))
        else:
            stack.append(leaf(token))
    return stack.pop()


def needs_brackets(parent: str, child: str, is_right: bool) -> bool:
    """Return whether an operand with the operator `child` needs brackets to be parsed back to the same tree."""
    if PRECEDENCE[child] != PRECEDENCE[parent]:
        return PRECEDENCE[child] < PRECEDENCE[parent]
    return is_right != (parent in RIGHT_ASSOCIATIVE)


def infix_from_postfix(tokens: Sequence[str], marked: int | None = None) -> str:
    """Convert a tree in postfix order to infix text, with `MARK` before the token `tokens[marked]`."""
    literals = {token for token in tokens if token[0] == "("}
    stack: list[tuple[str, str]] = []  # text and outermost operator ("" for a leaf) of each operand
    for index, token in enumerate(tokens):
        mark = MARK if index == marked else ""
        if token not in PRECEDENCE:
            stack.append((mark + token, ""))
            continue
        right = stack.pop()
        left = stack.pop()
        left_text = _operand(token, left, False, literals)
        right_text = _operand(token, right, True, literals)
        stack.append((left_text + mark + token + right_text, token))
    return stack.pop()[0]


def _operand(parent: str, operand: tuple[str, str], is_right: bool, literals: set[str]) -> str:
    text, operator = operand
    if not operator:
        return f"({text})" if text[0] == "-" else text
    if not needs_brackets(parent, operator, is_right):
        return text
    if operator == "/" and f"({text.replace(MARK, '')})" in literals:
        # The quotient of 3 and 8 must differ from the literal (3/8).
        text = "({})/{}".format(*text.split("/"))
    return f"({text})"


def nesting_level(tokens: Sequence[str]) -> int:
    """Return the depth of brackets that change the value of a postfix tree: 1 for `a-(b+c)`, 2 for `(a-(b-c))*d`."""

    def combine(operator: str, left: tuple[int, str], right: tuple[int, str]) -> tuple[int, str]:
        level = max(_operand_level(operator, left, False), _operand_level(operator, right, True))
        return level, operator

    level, _ = fold_postfix(tokens, lambda _: (0, ""), combine)
    return level


def _operand_level(parent: str, operand: tuple[int, str], is_right: bool) -> int:
    level, operator = operand
    if not operator or not needs_brackets(parent, operator, is_right):
        return level
    same = PRECEDENCE[parent] == PRECEDENCE[operator]
    return level if same and parent in COMMUTATIVE else level + 1
