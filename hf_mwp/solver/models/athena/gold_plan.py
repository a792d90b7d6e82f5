"""Target thoughts of equations, and gold plans: expansions of training problems that keep the target's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number
from hf_mwp.runtime.output_vocabulary import OutputVocabulary

from .configuration_athena import AthenaConfig
from .thoughts import CONSTANT, NUMBER, TRANSFORMS, Expansion, ThoughtTable


# With more positives in a round, `gold="subsets"` falls back to `"nodes"`, as in the authors' implementation.
MAX_SUBSETS = 30


class InitialConstants:
    """Constants of the output vocabulary as thoughts."""

    def __init__(self, config: AthenaConfig) -> None:
        self.literals = config.constants
        self.values = [Fraction(parse_number(literal)) for literal in self.literals]
        places: dict[Fraction, int] = {}
        for constant in config.initial_constants:
            place = self.literals.index(constant)
            places.setdefault(self.values[place], place)
        # Index of `c` for each constant that is written as `1 / c`.
        self.reciprocal: dict[int, int] = {}
        if config.reciprocal_constants:
            small = [place for place, value in enumerate(self.values) if value in places and 0 < value < 1]
            self.reciprocal = {at: places[1 / self.values[at]] for at in small if 1 / self.values[at] in places}
        # Indices of the other initial constants, in their order; of equal values, only the first.
        self.initial = [place for place in places.values() if place not in self.reciprocal]

    def place(self, index: int) -> int:
        """Return the index of an initial constant with the same value, or `index` if there is none."""
        return next((place for place in self.initial if self.values[place] == self.values[index]), index)


@dataclass(frozen=True)
class Target:
    """Id of a thought, ids of all nodes of its binary tree, and the index of the constant if it is one."""

    thought: int
    nodes: frozenset[int]
    constant: int | None = None


class TargetReader:
    """
    Converter of equations to thoughts, with the rules of the authors' implementation (github.com/the-jb/athena-math).

    `a - b` is `ADD(a, NEG b)`. A product with a constant 1, -1, 2 or -2 becomes `a`, `NEG a`, `ADD(a, a)` or `NEG
    ADD(a, a)`, `a / 2` is `HALF a`, any other division a product with `INV`. Powers are products for the exponents 1,
    2 and 3, and `ROOT` for 0.5. Constants that are not initial thoughts can only be used in rules: `0 - a` is `NEG
    a`, `a * 0.5` is `HALF a`, `a / 1` is `a`. `groups` has the first equal number of each number, which replaces it;
    `values` has the exact values of the numbers. Without values, only constants can be exponents.
    """

    def __init__(self, table: ThoughtTable, constants: InitialConstants, groups=None, values=None) -> None:
        self.table, self.constants, self.groups, self.values = table, constants, groups, values

    def read(self, expression: Expression, transforms: Sequence[str]) -> Target:
        """Return the thought of an equation. Raises `ExpressionError` if the model cannot write it as a thought."""
        target = self._read(expression)
        # Check that the model can reach each node: its constants are initial, its transforms exist.
        for thought in target.nodes:
            kind, children = self.table.kinds[thought], self.table.children[thought]
            if kind == CONSTANT and children[0] not in self.constants.initial:
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
            right = self._apply("NEG", right)
            # `0 - a`, where 0 is no initial thought.
            if self._is_spare(left, 0):
                return right
        return self._apply("ADD", left, right)

    def _leaf(self, node: Expression) -> Target:
        slot = node.slot_index
        if slot is not None:
            thought = self.table.add(NUMBER, slot if self.groups is None else self.groups[slot])
            return Target(thought, frozenset({thought}))
        if node.token not in self.constants.literals:
            raise ExpressionError(f"this model does not have the constant {node.token}", token=node.token)
        index = self.constants.literals.index(node.token)
        if index in self.constants.reciprocal:
            return self._apply("INV", self._constant(self.constants.reciprocal[index]))
        return self._constant(self.constants.place(index))

    def _constant(self, index: int) -> Target:
        thought = self.table.add(CONSTANT, index)
        return Target(thought, frozenset({thought}), index)

    def _value(self, target: Target) -> Fraction | None:
        return None if target.constant is None else self.constants.values[target.constant]

    def _is_spare(self, target: Target, value: Fraction | float) -> bool:
        """Return whether a target is a constant with this value that is not an initial thought."""
        return self._value(target) == value and target.constant not in self.constants.initial

    def _apply(self, operation: str, *operands: Target) -> Target:
        thought = self.table.add(operation, *(each.thought for each in operands))
        return Target(thought, frozenset({thought}).union(*(each.nodes for each in operands)))

    def _multiply(self, left: Target, right: Target) -> Target:
        # A factor of 1 or 2 (or its negative) becomes a sum, and the sign a transform.
        for factor, other in ((left, right), (right, left)):
            value = self._value(factor)
            if value in (1, -1, 2, -2):
                product = self._apply("ADD", other, other) if abs(value) == 2 else other
                return self._apply("NEG", product) if value < 0 else product
        # `a * 0.5`, where 0.5 is no initial thought.
        for factor, other in ((left, right), (right, left)):
            if self._is_spare(factor, Fraction(1, 2)):
                return self._apply("HALF", other)
        return self._apply("MUL", left, right)

    def _divide(self, left: Target, right: Target) -> Target:
        if self._value(right) == 2:
            return self._apply("HALF", left)
        if self._is_spare(right, 1):
            return left
        return self._multiply(left, self._apply("INV", right))

    def _power(self, base: Target, node: Expression) -> Target:
        exponent, allowed, found = None, (2, 3), node.token
        if not node.is_leaf:
            found = "an expression"
        elif node.slot_index is None:
            exponent, allowed = Fraction(parse_number(node.token)), (1, 2, 3, Fraction(1, 2))
        elif self.values is not None:
            exponent = Fraction(self.values[node.slot_index])
            found = f"{node.token} = {exponent}"
        if exponent not in allowed:
            rule = "exponents must be 1, 2, 3 or 0.5, or numbers of the text with the value 2 or 3"
            raise ExpressionError(f"{rule}, got {found}", token=node.token)
        if exponent == Fraction(1, 2):
            return self._apply("ROOT", base)
        power = base
        for _ in range(int(exponent) - 1):
            power = self._multiply(power, base)
        return power


@dataclass(frozen=True)
class GoldPlan:
    """Candidates that a training problem scores, in the order of expansion (`J` candidates)."""

    candidates: np.ndarray  # (J, 4): round, operation, left and right operand, see `Candidate`
    kept: np.ndarray  # (J,): index in the pool for positive candidates, -1 for all others
    target: int  # index of the target in the pool
    initial: np.ndarray  # initial thoughts: indices of numbers, then `-1 - index` for constants
    rounds: int  # number of rounds, including round 0


class PlanMaker:
    """Builder of gold plans and initial thoughts for a configuration ([`AthenaConfig`])."""

    def __init__(self, config: AthenaConfig) -> None:
        self.config = config
        self.vocabulary = OutputVocabulary(tuple(config.operators), tuple(config.constants))
        self.constants = InitialConstants(config)

    def initial_slots(self, positions: Sequence[int], groups: Sequence[int] | None) -> list[int]:
        """Return the indices of numbers that are initial thoughts; of merged equal numbers, only the first."""
        merges = self.config.merge_numbers and groups is not None
        return [slot for slot, at in enumerate(positions) if at >= 0 and not (merges and groups[slot] != slot)]

    def initial_thoughts(self, table: ThoughtTable, slots: Sequence[int]) -> list[int]:
        """Add the initial thoughts to the table, numbers, then constants, and return their rows."""
        return [table.add(NUMBER, slot) for slot in slots] + [table.add(CONSTANT, at) for at in self.constants.initial]

    def read_target(self, table: ThoughtTable, expression: Expression, groups=None, values=None) -> Target:
        """Return the target thought of an equation; see [`TargetReader`] for arguments and errors."""
        values = None if self.config.strict_exponents else values
        groups = groups if self.config.merge_numbers else None
        return TargetReader(table, self.constants, groups, values).read(expression, self.config.transforms)

    def make(self, labels: Sequence[int], positions: Sequence[int], groups=None, values=None) -> GoldPlan:
        """Return the plan of a problem from its prefix ids and the token of each number (-1 in truncated text); for
        the other arguments, see [`TargetReader`]. Raises `ExpressionError` if no thought equals the target."""
        table = ThoughtTable()
        slots = self.initial_slots(positions, groups)
        initial = self.initial_thoughts(table, slots)
        target = self.read_target(table, self.vocabulary.decode(labels), groups, values)
        # With too many subsets of operands, only the nodes of the target are positive.
        rows = self._expand(table, initial, target, self.config.gold == "subsets")
        rows = rows or self._expand(table, initial, target, subsets=False)
        # Numbers by their slots, constants as -1, -2, ...
        constants = [-1 - place for place in range(len(self.constants.initial))]
        return GoldPlan(
            candidates=np.array([row[:4] for row in rows], int),
            kept=np.array([row[4] for row in rows], int),
            target=next(row[4] for row in reversed(rows) if row[5] == target.thought),
            initial=np.array([*slots, *constants], int),
            rounds=rows[-1][0] + 1,
        )

    def _expand(
        self, table: ThoughtTable, initial: Sequence[int], target: Target, subsets: bool
    ) -> list[tuple[int, int, int, int, int, int]] | None:
        """Return rows `(round, operation, left, right, pool index, thought)`, `None` with too many subsets."""
        expansion = Expansion(table, initial, self.config.transforms)
        rows: list[tuple[int, int, int, int, int, int]] = []
        while (candidates := expansion.next_round()) is not None:
            positives = []
            for candidate in candidates:
                thought = candidate.thought
                # A candidate is kept if it is a part of the target; it then gets the next place in the pool.
                positive = table.contains(target.thought, thought) if subsets else thought in target.nodes
                place = len(expansion.pool) + len(positives) if positive else -1
                rows.append((expansion.round - 1, *candidate[:3], place, thought))
                if positive:
                    positives.append(candidate)
            expansion.keep(positives)
            # The round that finds the target is the last.
            if any(candidate.thought == target.thought for candidate in positives):
                return rows
            if subsets and len(positives) > MAX_SUBSETS:
                return None
        # No candidate is left: a number of the target is not among the initial thoughts.
        absent = (table.children[node][0] for node in target.nodes - {*initial} if table.kinds[node] == NUMBER)
        raise ExpressionError(f"the target uses number N{next(absent, '?')}, but the text was truncated before it")
