"""Conversion of equations to target thoughts and their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...expressions import Expression, ExpressionError, parse_number
from .thought_table import TRANSFORMS, ThoughtTable


OUTPUT_CONSTANTS = ("0", "1", "2", "0.5")
"""Constants that expressions of thoughts may need; see [`ThoughtTable.prefix`]."""


class InitialConstants:
    """
    Constants of the output vocabulary as thoughts.

    Args:
        literals (`Sequence[str]`): Constants of the vocabulary.
        initial (`Sequence[str]`): Those that are initial thoughts.
        reciprocals (`bool`, *optional*, defaults to `True`): Whether a constant between 0 and 1 is written as `1 / c`
            if its reciprocal `c` is an initial constant too.

    Attributes:
        values (`list[Fraction]`): Values of all constants.
        reciprocal (`dict[int, int]`): Index of `c` for each constant that is written as `1 / c`.
        initial (`list[int]`): Indices of the other initial constants, in their order; of equal values, only the first.
    """

    def __init__(self, literals: Sequence[str], initial: Sequence[str], reciprocals: bool = True) -> None:
        self.literals, self.values = list(literals), [Fraction(parse_number(literal)) for literal in literals]
        places: dict[Fraction, int] = {}
        for constant in initial:
            place = self.literals.index(constant)
            places.setdefault(self.values[place], place)
        small = [place for place, value in enumerate(self.values) if value in places and 0 < value < 1 and reciprocals]
        self.reciprocal = {at: places[1 / self.values[at]] for at in small if 1 / self.values[at] in places}
        self.initial = [place for place in places.values() if place not in self.reciprocal]

    def place(self, index: int) -> int:
        """Return the index of an initial constant with the same value, or `index` if there is none."""
        same = (place for place in self.initial if self.values[place] == self.values[index])
        return next(same, index)


@dataclass(frozen=True)
class Target:
    """
    Thought with all nodes of its binary tree.

    Args:
        thought (`int`): Id in the [`ThoughtTable`].
        nodes (`frozenset[int]`): Ids of all nodes, including the thought.
        constant (`int`, *optional*): Index of the constant, if the thought is a constant.
    """

    thought: int
    nodes: frozenset[int]
    constant: int | None = None


class TargetReader:
    """
    Converter of equations to thoughts, with the rules of the authors' implementation (github.com/the-jb/athena-math).

    `a - b` is `ADD(a, NEG b)`. A product with a constant 1, -1, 2 or -2 becomes `a`, `NEG a`, `ADD(a, a)` or `NEG
    ADD(a, a)`, `a / 2` is `HALF a`, any other division a product with `INV`. Powers are products for the exponents 1,
    2 and 3, and `ROOT` for 0.5. Constants that are not initial thoughts can only be used in rules: `0 - a` is `NEG
    a`, `a * 0.5` is `HALF a`, `a / 1` is `a`.

    Args:
        table ([`ThoughtTable`]): Table to add thoughts to.
        constants ([`InitialConstants`]): Constants of the vocabulary.
        groups (`Sequence[int]`, *optional*): Index of the number to use, for each number (the first equal number).
        values (`Sequence[Fraction | str]`, *optional*): Exact values of the numbers, for exponents. Without values,
            only constants can be exponents.
    """

    def __init__(
        self,
        table: ThoughtTable,
        constants: InitialConstants,
        groups: Sequence[int] | None = None,
        values: Sequence[Fraction | str] | None = None,
    ) -> None:
        self.table, self.constants, self.groups, self.values = table, constants, groups, values

    def read(self, expression: Expression, transforms: Sequence[str] = TRANSFORMS) -> Target:
        """
        Return the thought of an equation over numbers and constants.

        Raises:
            `ExpressionError`: the equation uses a different exponent, a constant that is not an initial thought, or a
            transform that is not in `transforms`.
        """
        target = self._read(expression)
        # Check that the model can reach each node: its constants are initial, its transforms exist.
        for thought in target.nodes:
            kind, children = self.table.kinds[thought], self.table.children[thought]
            if kind == "CON" and children[0] not in self.constants.initial:
                token = self.constants.literals[children[0]]
                raise ExpressionError(f"the constant {token} is not an initial thought of this model", token=token)
            if kind in TRANSFORMS and kind not in transforms:
                raise ExpressionError(f"the target needs the transform {kind}, which this model does not have")
        return target

    def _read(self, node: Expression) -> Target:
        if node.is_leaf:
            return self._leaf(node)
        left = self._read(node.left)
        if node.token == "^":
            return self._power(left, node.right)
        right = self._read(node.right)
        if node.token == "*":
            return self._multiply(left, right)
        if node.token == "/":
            return self._divide(left, right)
        if node.token == "-":
            right = self._transform("NEG", right)
            # `0 - a`, where 0 is no initial thought.
            if self._is_spare(left, 0):
                return right
        return self._aggregate("ADD", left, right)

    def _leaf(self, node: Expression) -> Target:
        slot = node.slot_index
        if slot is not None:
            thought = self.table.number(slot if self.groups is None else self.groups[slot])
            return Target(thought, frozenset({thought}))
        if node.token not in self.constants.literals:
            raise ExpressionError(f"this model does not have the constant {node.token}", token=node.token)
        index = self.constants.literals.index(node.token)
        if index in self.constants.reciprocal:
            return self._transform("INV", self._constant(self.constants.reciprocal[index]))
        return self._constant(self.constants.place(index))

    def _constant(self, index: int) -> Target:
        thought = self.table.constant(index)
        return Target(thought, frozenset({thought}), index)

    def _value(self, target: Target) -> Fraction | None:
        return None if target.constant is None else self.constants.values[target.constant]

    def _is_spare(self, target: Target, value: Fraction | float) -> bool:
        """Return whether a target is a constant with this value that is not an initial thought."""
        return self._value(target) == value and target.constant not in self.constants.initial

    def _transform(self, operation: str, operand: Target) -> Target:
        thought = self.table.transform(operation, operand.thought)
        return Target(thought, operand.nodes | {thought})

    def _aggregate(self, operation: str, left: Target, right: Target) -> Target:
        thought = self.table.aggregate(operation, left.thought, right.thought)
        return Target(thought, left.nodes | right.nodes | {thought})

    def _multiply(self, left: Target, right: Target) -> Target:
        # A factor of 1 or 2 (or its negative) becomes a sum, and the sign a transform.
        for factor, other in ((left, right), (right, left)):
            value = self._value(factor)
            if value in (1, -1, 2, -2):
                product = self._aggregate("ADD", other, other) if abs(value) == 2 else other
                return self._transform("NEG", product) if value < 0 else product
        # `a * 0.5`, where 0.5 is no initial thought.
        for factor, other in ((left, right), (right, left)):
            if self._is_spare(factor, Fraction(1, 2)):
                return self._transform("HALF", other)
        return self._aggregate("MUL", left, right)

    def _divide(self, left: Target, right: Target) -> Target:
        if self._value(right) == 2:
            return self._transform("HALF", left)
        if self._is_spare(right, 1):
            return left
        return self._multiply(left, self._transform("INV", right))

    def _power(self, base: Target, node: Expression) -> Target:
        exponent = self._exponent(node)
        if exponent == Fraction(1, 2):
            return self._transform("ROOT", base)
        power = base
        for _ in range(int(exponent) - 1):
            power = self._multiply(power, base)
        return power

    def _exponent(self, node: Expression) -> Fraction:
        slot = node.slot_index
        if slot is not None and self.values is not None:
            value, allowed = Fraction(self.values[slot]), (2, 3)
        else:
            is_literal = node.is_leaf and slot is None
            value, allowed = parse_number(node.token) if is_literal else None, (1, 2, 3, Fraction(1, 2))
        if value not in allowed:
            told = node.token if node.is_leaf else "an expression"
            told += f" = {value}" * (slot is not None and value is not None)
            raise ExpressionError(
                f"exponents must be 1, 2, 3 or 0.5, or numbers of the text with the value 2 or 3, got {told}",
                token=node.token,
            )
        return Fraction(value)
