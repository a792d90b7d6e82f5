"""Infix text of a tree with as few brackets as possible, and how deeply brackets nest."""

from collections.abc import Sequence

from .operators import COMMUTATIVE, OPERATORS, PRECEDENCE, needs_brackets


_MARK = "\0"


def offset_in_infix(tokens: Sequence[str], index: int) -> int:
    """Return where token number `index` of the postfix `tokens` stands in their infix text."""
    return infix_from_postfix(tokens, index).index(_MARK)


def infix_from_postfix(tokens: Sequence[str], marked: int | None = None) -> str:
    """The infix text of a tree in postfix order, with a null character before token number `marked`."""
    literals = {token for token in tokens if token[0] == "("}
    stack: list[tuple[str, str]] = []  # text, its outermost operator ("" for a leaf)
    for index, token in enumerate(tokens):
        mark = _MARK if index == marked else ""
        if token not in PRECEDENCE:
            stack.append((mark + token, ""))
            continue
        right, left = stack.pop(), stack.pop()
        text = _operand(token, left, False, literals) + mark + token + _operand(token, right, True, literals)
        stack.append((text, token))
    return stack.pop()[0]


def _operand(parent: str, operand: tuple[str, str], is_right: bool, literals: set[str]) -> str:
    text, operator = operand
    if not operator:
        return f"({text})" if text[0] == "-" else text
    if not needs_brackets(parent, operator, is_right):
        return text
    if operator == "/" and f"({text.replace(_MARK, '')})" in literals:
        # Beside the literal (3/8) the quotient of 3 and 8 must look different.
        text = "({})/{}".format(*text.split("/"))
    return f"({text})"


def nesting_level(tokens: Sequence[str]) -> int:
    """Depth of the brackets that the value of a postfix tree depends on: 1 for `a-(b+c)`, 2 for `(a-(b-c))*d`."""
    stack: list[tuple[int, str]] = []
    for token in tokens:
        if token not in OPERATORS:
            stack.append((0, ""))
            continue
        right, left = stack.pop(), stack.pop()
        stack.append((max(_operand_level(token, left, False), _operand_level(token, right, True)), token))
    return stack.pop()[0]


def _operand_level(parent: str, operand: tuple[int, str], is_right: bool) -> int:
    level, operator = operand
    if not operator or not needs_brackets(parent, operator, is_right):
        return level
    same = PRECEDENCE[parent] == PRECEDENCE[operator]
    return level if same and parent in COMMUTATIVE else level + 1
