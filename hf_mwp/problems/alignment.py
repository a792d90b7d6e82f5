"""Which number of the text a number of the equation is."""

from collections.abc import Sequence

from ..expressions import Expression, normalize_number, parse_number
from .number_mention import NumberMention, literal_of


def group_numbers(mentions: Sequence[NumberMention]) -> tuple[int, ...]:
    """
    For each number the index of the first one of the same value and kind (percentage or not).

    Args:
        mentions (`Sequence[NumberMention]`):
            The numbers of a text.
    """
    first: dict = {}
    return tuple(
        first.setdefault((mention.value, mention.is_percent), index) for index, mention in enumerate(mentions)
    )


def align_literals(expression: Expression, mentions: Sequence[NumberMention]) -> Expression:
    """
    Replaces the literals of an equation by slots for the numbers of the text.

    A literal stands for the first number of the text that has its value and is a percentage if and only if it is one;
    failing that, for the first that has its value, so that `0.2` is found in a text that says `20%`. Whole numbers are
    excepted from the second rule: the 1 of the text is not meant by `100%`. A literal without such a number is a
    constant and gets one spelling, so that `1.0`, `01` and `100%` are one symbol `1`.

    Args:
        expression ([`~hf_mwp.expressions.Expression`]):
            The equation's tree, with literals.
        mentions (`Sequence[NumberMention]`):
            The numbers of the text.

    Returns:
        [`~hf_mwp.expressions.Expression`]: the same tree over slots and constants.
    """
    by_kind: dict = {}
    by_value: dict = {}
    for index, mention in enumerate(mentions):
        by_kind.setdefault((mention.value, mention.is_percent), index)
        by_value.setdefault(mention.value, index)
    tokens = expression.to_postfix()
    if len(tokens) == 1:
        return Expression(_symbol(tokens[0], by_kind, by_value))
    leaves = {leaf.token for leaf in expression.leaves()}
    symbols = {token: _symbol(token, by_kind, by_value) for token in leaves}
    return Expression.from_postfix([symbols.get(token, token) for token in tokens], max_depth=None, max_length=None)


def _symbol(literal: str, by_kind: dict, by_value: dict) -> str:
    if literal[:1] == "N":
        return literal
    value = parse_number(literal)
    index = by_kind.get((value, literal.endswith("%")))
    if index is None and value.denominator != 1:
        index = by_value.get(value)
    if index is not None:
        return f"N{index}"
    if value < 0:
        return normalize_number(literal)
    return literal_of(value)
