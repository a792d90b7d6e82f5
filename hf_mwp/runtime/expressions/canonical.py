"""Canonical form of expressions, which is equal for expressions that differ only by commuting and regrouping."""

from collections.abc import Sequence
from dataclasses import dataclass

from .numbers import is_slot, parse_number
from .operators import COMMUTATIVE, fold_postfix


_INVERSE = {"+": "-", "*": "/"}
_GROUP = {"+": "+", "-": "+", "*": "*", "/": "*"}

Tokens = tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """Flattened sum or product: `operator` joins the `direct` terms, the inverse operator the `inverse` terms."""

    operator: str  # "" for a single term: a number or a power
    direct: list[Tokens]
    inverse: list[Tokens]

    def tokens(self) -> Tokens:
        if len(self.direct) == 1 and not self.inverse:
            return self.direct[0]
        # The operators of all terms precede the terms.
        tokens = [_INVERSE[self.operator]] * len(self.inverse)
        tokens += [self.operator] * (len(self.direct) - 1)
        for term in sorted(self.direct, key=_order) + sorted(self.inverse, key=_order):
            tokens += term
        return tuple(tokens)


def canonical_prefix(postfix: Sequence[str]) -> Tokens:
    """Return the canonical form ([`Expression.canonical`]) of a tree in postfix order, as prefix tokens."""
    group = fold_postfix(postfix, lambda token: _Group("", [(_spelling(token),)], []), _join)
    return group.tokens()


def _join(token: str, left: _Group, right: _Group) -> _Group:
    """Join the terms of both operands; the terms of a subtrahend or divisor change sides."""
    if token == "^":
        return _Group("", [("^", *left.tokens(), *right.tokens())], [])
    left = _regroup(left, _GROUP[token])
    right = _regroup(right, _GROUP[token])
    if token in COMMUTATIVE:
        left.direct += right.direct
        left.inverse += right.inverse
    else:
        left.direct += right.inverse
        left.inverse += right.direct
    return left


def _regroup(group: _Group, operator: str) -> _Group:
    return group if group.operator == operator else _Group(operator, [group.tokens()], [])


def _spelling(token: str) -> str:
    """Return the standard spelling of a number: `10` for `10.0` and `010`. Percentages and fractions are unchanged."""
    if is_slot(token) or not token.lstrip("-").replace(".", "").isdigit():
        return token
    value = parse_number(token)
    if value.denominator == 1:
        return str(value.numerator)
    digits = token.lstrip("-").strip("0")
    if digits.startswith("."):
        digits = f"0{digits}"
    return f"-{digits}" if value < 0 else digits


def _order(tokens: Tokens) -> tuple[bool, int, Tokens]:
    """Return the sort key of a term: slots by index, then numbers and operations by length."""
    first = tokens[0]
    if is_slot(first):
        return False, int(first[1:]), tokens
    return True, len(tokens), tokens
