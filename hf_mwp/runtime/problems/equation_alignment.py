"""Alignment of the numbers in an equation with the numbers in the problem text."""

from collections.abc import Sequence

from hf_mwp.runtime.expressions import Expression, normalize_number, parse_number
from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.expressions.operators import fold_postfix
from hf_mwp.runtime.numbers.number_mention import NumberMention


def align_literals(expression: Expression, mentions: Sequence[NumberMention]) -> Expression:
    """
    Replace the literals of an equation by slots (`N0`, `N1`, ...): each by the slot of the first number in the text
    with the same value and kind (percentage or not). If there is none and the literal is not an integer, the kind is
    ignored, so `0.2` matches `20%`. All other literals are constants and get a standard spelling: `1` for `1.0`, `01`
    and `100%`.

    If the text contains -5 but not 5, `8+5` becomes `8-(-5)`. If the text contains the bare fraction 1/3 but not 3,
    `12/3` becomes `12*(1/3)`.
    """
    # Equal numbers share the slot of the first of them.
    by_kind: dict = {}
    by_value: dict = {}
    for index, mention in enumerate(mentions):
        by_kind.setdefault((mention.value, mention.is_percent), index)
        by_value.setdefault(mention.value, index)
    # Use numbers whose negative or reciprocal is written in the text.
    opposites = _opposites(mentions, by_value)
    tokens = _use_opposites(expression, opposites) if opposites else expression.to_postfix()
    # Each literal is looked up once, although it may occur several times.
    literals = {leaf.token for leaf in expression.leaves()}
    symbols = {literal: _symbol(literal, by_kind, by_value) for literal in literals}
    return Expression.from_postfix([symbols.get(token, token) for token in tokens])


INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}


def _opposites(mentions: Sequence[NumberMention], by_value: dict) -> dict:
    """Return slots of negatives and reciprocals of values missing in the text, by `(operators, missing value)`."""
    opposites = {}
    for index, mention in enumerate(mentions):
        if mention.value < 0 and -mention.value not in by_value:
            opposites.setdefault(("+-", -mention.value), f"N{index}")
        if mention.value.numerator == 1 and mention.value.denominator not in by_value and mention.is_bare_fraction:
            opposites.setdefault(("*/", 1 / mention.value), f"N{index}")
    return opposites


def _use_opposites(expression: Expression, opposites: dict) -> list[str]:
    """Return postfix tokens with `a+5` rewritten as `a-(-5)` and `a*3` as `a/(1/3)` for the given `opposites`."""

    def opposite(operator: str, operand: list[str]) -> str | None:
        if len(operand) > 1 or operand[0][:1] == "N":
            return None
        operators = "+-" if operator in "+-" else "*/"
        return opposites.get((operators, parse_number(operand[0])))

    def rewritten(operator: str, left: list[str], right: list[str]) -> list[str]:
        if operator == "^":
            return [*left, *right, operator]
        left_slot = opposite(operator, left)
        right_slot = opposite(operator, right)
        if right_slot:
            return [*left, right_slot, INVERSE[operator]]
        # `5+a` has the missing value on the left: the operands change places, as in `a-(-5)`.
        if left_slot and operator in "+*":
            return [*right, left_slot, INVERSE[operator]]
        return [*left, *right, operator]

    return fold_postfix(expression.to_postfix(), lambda token: [token], rewritten)


def _symbol(literal: str, by_kind: dict, by_value: dict) -> str:
    if literal[:1] == "N":
        return literal
    value = parse_number(literal)
    # The same kind first; `0.2` may also stand for 20%, but 5 never for 500%.
    index = by_kind.get((value, literal.endswith("%")))
    if index is None and value.denominator != 1:
        index = by_value.get(value)
    if index is not None:
        return f"N{index}"
    return normalize_number(literal) if value < 0 else literal_of(value)
