"""The five operators, their precedence, and the spellings under which they occur in the data sets."""

OPERATORS = ("+", "-", "*", "/", "^")

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 4}
# A sign binds tighter than a product and looser than a power: -2^2 is 0-2^2, 2*-3 is 2*(0-3).
SIGN_PRECEDENCE = 3

COMMUTATIVE = frozenset("+*")
RIGHT_ASSOCIATIVE = frozenset("^")

# Ape210k writes powers as `**` and, rarely, ratios as `:`.
OPERATOR_SPELLINGS = {"+": "+", "-": "-", "*": "*", "/": "/", "^": "^", "**": "^", ":": "/"}

BRACKETS = {"(": ")", "[": "]", "{": "}"}


def needs_brackets(parent: str, child: str, is_right: bool) -> bool:
    """Return whether an operand that is itself an operation must be bracketed to be read back as the same tree."""
    if PRECEDENCE[child] != PRECEDENCE[parent]:
        return PRECEDENCE[child] < PRECEDENCE[parent]
    return is_right != (parent in RIGHT_ASSOCIATIVE)
