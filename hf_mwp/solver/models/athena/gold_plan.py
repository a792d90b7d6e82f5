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
        # Index of the first initial constant with each value.
        index_of: dict[Fraction, int] = {}
        for constant in config.initial_constants:
            index = self.literals.index(constant)
            index_of.setdefault(self.values[index], index)
        # Index of `c` for each constant that is written as `1 / c`.
        self.reciprocal: dict[int, int] = {}
        if config.reciprocal_constants:
            for index, value in enumerate(self.values):
                if value in index_of and 0 < value < 1 and 1 / value in index_of:
                    self.reciprocal[index] = index_of[1 / value]
        # Indices of the other initial constants, in their order; of equal values, only the first.
        self.initial = [index for index in index_of.values() if index not in self.reciprocal]

    def place(self, index: int) -> int:
        """Return the index of an initial constant with the same value, or `index` if there is none."""
        for initial in self.initial:
            if self.values[initial] == self.values[index]:
                return initial
        return index


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
        self.table = table
        self.constants = constants
        self.groups = groups
        self.values = values

    def read(self, expression: Expression, transforms: Sequence[str]) -> Target:
        """Return the thought of an equation. Raises `ExpressionError` if the model cannot write it as a thought."""
        target = self._read(expression)
        # Check that the model can reach each node: its constants are initial, its transforms exist.
        for thought in target.nodes:
            operation = self.table.kinds[thought]
            children = self.table.children[thought]
            if operation == CONSTANT and children[0] not in self.constants.initial:
                token = self.constants.literals[children[0]]
                raise ExpressionError(f"the constant {token} is not an initial thought of this model", token=token)
            if operation in TRANSFORMS and operation not in transforms:
                raise ExpressionError(f"the target needs the transform {operation}, which this model does not have")
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
            if self.groups is not None:
                slot = self.groups[slot]
            thought = self.table.add(NUMBER, slot)
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
        thought = self.table.add(operation, *[operand.thought for operand in operands])
        nodes = [operand.nodes for operand in operands]
        return Target(thought, frozenset({thought}).union(*nodes))

    def _multiply(self, left: Target, right: Target) -> Target:
        # A factor of 1 or 2 (or its negative) becomes a sum, and the sign a transform.
        for factor, operand in ((left, right), (right, left)):
            value = self._value(factor)
            if value in (1, -1, 2, -2):
                if abs(value) == 2:
                    operand = self._apply("ADD", operand, operand)
                return self._apply("NEG", operand) if value < 0 else operand
        # `a * 0.5`, where 0.5 is no initial thought.
        for factor, operand in ((left, right), (right, left)):
            if self._is_spare(factor, Fraction(1, 2)):
                return self._apply("HALF", operand)
        return self._apply("MUL", left, right)

    def _divide(self, left: Target, right: Target) -> Target:
        if self._value(right) == 2:
            return self._apply("HALF", left)
        if self._is_spare(right, 1):
            return left
        return self._multiply(left, self._apply("INV", right))

    def _power(self, base: Target, node: Expression) -> Target:
        exponent = None
        allowed = (2, 3)
        description = node.token
        if not node.is_leaf:
            description = "an expression"
        elif node.slot_index is None:
            exponent = Fraction(parse_number(node.token))
            allowed = (1, 2, 3, Fraction(1, 2))
        elif self.values is not None:
            exponent = Fraction(self.values[node.slot_index])
            description = f"{node.token} = {exponent}"
        if exponent not in allowed:
            rule = "exponents must be 1, 2, 3 or 0.5, or numbers of the text with the value 2 or 3"
            raise ExpressionError(f"{rule}, got {description}", token=node.token)
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
        if groups is None or not self.config.merge_numbers:
            groups = range(len(positions))
        return [slot for slot, position in enumerate(positions) if position >= 0 and groups[slot] == slot]

    def initial_thoughts(self, table: ThoughtTable, slots: Sequence[int]) -> list[int]:
        """Add the initial thoughts to the table, numbers, then constants, and return their rows."""
        numbers = [table.add(NUMBER, slot) for slot in slots]
        constants = [table.add(CONSTANT, index) for index in self.constants.initial]
        return numbers + constants

    def read_target(self, table: ThoughtTable, expression: Expression, groups=None, values=None) -> Target:
        """Return the target thought of an equation; see [`TargetReader`] for arguments and errors."""
        if self.config.strict_exponents:
            values = None
        if not self.config.merge_numbers:
            groups = None
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
        constants = range(-1, -1 - len(self.constants.initial), -1)
        row_table = np.array(rows, int)
        pool_indices = row_table[:, 4]
        return GoldPlan(
            candidates=row_table[:, :4],
            kept=pool_indices,
            target=int(pool_indices[row_table[:, 5] == target.thought][-1]),
            initial=np.array([*slots, *constants], int),
            rounds=rows[-1][0] + 1,
        )

    def _expand(
        self, table: ThoughtTable, initial: Sequence[int], target: Target, subsets: bool
    ) -> list[tuple[int, int, int, int, int, int]] | None:
        """Return rows `(round, operation, left, right, pool index, thought)`, `None` with too many subsets."""
        expansion = Expansion(table, initial, self.config.transforms)
        rows: list[tuple[int, int, int, int, int, int]] = []
        # `next_round` returns `None` if no candidate is left.
        for candidates in iter(expansion.next_round, None):
            positives = []
            for candidate in candidates:
                thought = candidate.thought
                # A candidate is kept if it is a part of the target; it then gets the next place in the pool.
                is_positive = table.contains(target.thought, thought) if subsets else thought in target.nodes
                pool_index = -1
                if is_positive:
                    pool_index = len(expansion.pool) + len(positives)
                    positives.append(candidate)
                rows.append((expansion.round - 1, *candidate[:3], pool_index, thought))
            expansion.keep(positives)
            # The round that finds the target is the last.
            if target.thought in expansion.pool:
                return rows
            if subsets and len(positives) > MAX_SUBSETS:
                return None
        # No candidate is left: a number of the target is not among the initial thoughts.
        absent = "?"
        for node in target.nodes - {*initial}:
            if table.kinds[node] == NUMBER:
                absent = table.children[node][0]
                break
        raise ExpressionError(f"the target uses number N{absent}, but the text was truncated before it")
