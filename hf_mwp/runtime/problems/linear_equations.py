"""Solution of equations with one unknown, as an expression over the numbers of the equation."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.expressions.numbers import to_half_width
from hf_mwp.runtime.expressions.operators import fold_postfix

from .equation_alignment import INVERSE


_UNKNOWN = re.compile(r"[^\W\d]\w*")
_SLOT = "N9999"  # stands for the unknown in a parsed side
_OMITTED_SIGN = re.compile(r"(?<=[\d)])\s*(?=[^\W\d_]|\()")  # 2x and 2(x+1) are products
_ONE = Expression("1")


@dataclass
class LinearForm:
    """
    A side of an equation as a sum of terms, each added or subtracted.

    Args:
        added_factors (`list[Expression]`), subtracted_factors (`list[Expression]`): Factors of the unknown.
        added (`list[Expression]`), subtracted (`list[Expression]`): Terms without the unknown.
    """

    added_factors: list[Expression] = field(default_factory=list)
    subtracted_factors: list[Expression] = field(default_factory=list)
    added: list[Expression] = field(default_factory=list)
    subtracted: list[Expression] = field(default_factory=list)

    @property
    def has_unknown(self) -> bool:
        """Return whether a term contains the unknown."""
        return bool(self.added_factors or self.subtracted_factors)

    def total(self) -> Expression:
        """Return the sum of the terms without the unknown."""
        return _total(self.added, self.subtracted)

    def plus(self, other: "LinearForm") -> "LinearForm":
        """Return the sum of two sides."""
        return LinearForm(
            self.added_factors + other.added_factors,
            self.subtracted_factors + other.subtracted_factors,
            self.added + other.added,
            self.subtracted + other.subtracted,
        )

    def negative(self) -> "LinearForm":
        """Return the side with all signs changed."""
        return LinearForm(self.subtracted_factors, self.added_factors, self.subtracted, self.added)

    def times(self, factor: Expression) -> "LinearForm":
        """Return the side with each term multiplied by a factor without the unknown."""
        return self._with_terms(lambda term: factor if term == _ONE else Expression("*", factor, term))

    def divided_by(self, divisor: Expression) -> "LinearForm":
        """Return the side with each term divided by a divisor without the unknown."""
        return self._with_terms(lambda term: Expression("/", term, divisor))

    def _with_terms(self, change: Callable[[Expression], Expression]) -> "LinearForm":
        return LinearForm(
            list(map(change, self.added_factors)),
            list(map(change, self.subtracted_factors)),
            list(map(change, self.added)),
            list(map(change, self.subtracted)),
        )


def solve_equation(equation: str) -> Expression:
    """
    Solve an equation for its only unknown: an equation in which it occurs once, or a linear equation.

    Args:
        equation (`str`): An equation such as `6*x+4*(10-x)=50`. The unknown is a word; `2x` and `2(x+1)` are products.

    Returns:
        [`Expression`]: The value of the unknown over the numbers of the equation: `(50-4*10)/(6-4)`.

    Raises:
        ExpressionError: There is not exactly one equals sign and one unknown, a side cannot be parsed, or the equation
            is not linear and contains the unknown several times, or has not exactly one solution.
    """
    text = to_half_width(equation)
    names = set(_UNKNOWN.findall(text))
    sides = text.split("=")
    if len(sides) != 2 or len(names) != 1:
        raise ExpressionError("expected one equation with one unknown", token=equation)
    name = names.pop()
    left = _parse_side(sides[0], name)
    right = _parse_side(sides[1], name)
    counts = [side.to_prefix().count(_SLOT) for side in (left, right)]
    if counts == [1, 0]:
        solutions = list(solve_for_slots(left, right))
    elif counts == [0, 1]:
        solutions = list(solve_for_slots(right, left))
    else:
        solutions = []
    # A power cannot be inverted.
    if not solutions:
        return _solve_linear(left, right)
    (_, solution) = solutions[0]
    return solution


def solve_for_slots(tree: Expression, value: Expression) -> Iterator[tuple[int, Expression]]:
    """Yield each slot that occurs once and in no power, and the equation `tree = value` solved for this slot."""
    counts = Counter(leaf.token for leaf in tree.leaves())
    waiting = [(tree, value)]
    while waiting:
        node, result = waiting.pop()
        if node.is_slot and counts[node.token] == 1:
            yield node.slot_index, result
        elif not node.is_leaf and node.token != "^":
            inverse = INVERSE[node.token]
            if node.token in "+*":
                right_result = Expression(inverse, result, node.left)
            else:
                right_result = Expression(node.token, node.left, result)
            waiting.append((node.right, right_result))
            waiting.append((node.left, Expression(inverse, result, node.right)))


def _parse_side(text: str, name: str) -> Expression:
    text = _OMITTED_SIGN.sub("*", text)
    return Expression.from_infix(re.sub(rf"\b{re.escape(name)}\b", _SLOT, text))


def _solve_linear(left: Expression, right: Expression) -> Expression:
    difference = _linear_form(left).plus(_linear_form(right).negative())
    factor = _total(difference.added_factors, difference.subtracted_factors)
    if factor.evaluate() < 0:
        difference = difference.negative()
        factor = _total(difference.added_factors, difference.subtracted_factors)
    if factor.evaluate() == 0:
        raise ExpressionError("the equation does not determine its unknown")
    value = _total(difference.subtracted, difference.added)
    return value if factor == _ONE else Expression("/", value, factor)


def _linear_form(side: Expression) -> LinearForm:
    return fold_postfix(side.to_postfix(), _leaf_form, _combined_form)


def _leaf_form(token: str) -> LinearForm:
    if token == _SLOT:
        return LinearForm(added_factors=[_ONE])
    return LinearForm(added=[Expression(token)])


def _combined_form(operator: str, left: LinearForm, right: LinearForm) -> LinearForm:
    if operator == "+":
        return left.plus(right)
    if operator == "-":
        return left.plus(right.negative())
    if not left.has_unknown and not right.has_unknown:
        return LinearForm(added=[Expression(operator, left.total(), right.total())])
    if operator == "*" and not left.has_unknown:
        return right.times(left.total())
    if operator == "*" and not right.has_unknown:
        return left.times(right.total())
    if operator == "/" and not right.has_unknown:
        return left.divided_by(right.total())
    raise ExpressionError("the equation is not linear in its unknown", token=operator)


def _total(added: list[Expression], subtracted: list[Expression]) -> Expression:
    """Return the sum of the added terms, less the subtracted terms; `0` without terms."""
    total = added[0] if added else Expression("0")
    for term in added[1:]:
        total = Expression("+", total, term)
    for term in subtracted:
        total = Expression("-", total, term)
    return total
