"""Equations as the answer verifier reads them: the nodes of a tree with their symbols, depths and values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hf_mwp.runtime.expressions import Expression


VALUE_SIZE = 7
"""Number of features of a node's value."""

MAX_NODES = 47
"""Maximum number of nodes of an equation that are read."""

MAX_DEPTH = 19
"""Depth of all nodes further down."""

_MAX_DECIMALS = 5
_MAX_POWER = 20
_MAX_BASE = 1e6
# Range of decimal logarithms, and the number by which they are divided.
_MIN_LOGARITHM = -4.0
_MAX_LOGARITHM = 8.0
_LOGARITHM_SCALE = 3.0
_SMALLEST = 1e-9
_UNKNOWN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class EquationNodes:
    """
    The nodes of an equation's tree in prefix order, of which the first is a start symbol.

    The ids of symbols are those of [`OutputVocabulary`] for operators and constants, then the start symbol. Numbers of
    the text follow: the `i`-th has the id of the start symbol plus `i + 1`.
    """

    symbols: list[int]
    depths: list[int]  # 0 for the start symbol, 1 for the root
    values: list[tuple[float, ...]]  # of each node's subtree, see [`describe_value`]


def read_equation(
    expression: Expression, numbers: Sequence[float], symbol_ids: Mapping[str, int]
) -> EquationNodes | None:
    """
    Return the nodes of an equation.

    Args:
        expression (`Expression`): Tree over number slots.
        numbers (`Sequence[float]`): Values of the numbers in the text.
        symbol_ids (`Mapping[str, int]`): Ids of operators and constants, from 0.

    Returns:
        [`EquationNodes`] or `None`: `None` if the equation has an unknown constant.
    """
    start = len(symbol_ids)
    nodes = EquationNodes([start], [0], [(0.0,) * VALUE_SIZE])
    try:
        _read_subtree(expression, 1, numbers, symbol_ids, nodes)
    except KeyError:
        return None
    length = MAX_NODES + 1
    return EquationNodes(nodes.symbols[:length], nodes.depths[:length], nodes.values[:length])


def _read_subtree(
    tree: Expression, depth: int, numbers: Sequence[float], symbol_ids: Mapping[str, int], nodes: EquationNodes
) -> float:
    """Append the nodes of a subtree, and return its value, NaN if it has none."""
    index = len(nodes.symbols)
    nodes.symbols.append(0)
    nodes.depths.append(min(depth, MAX_DEPTH))
    nodes.values.append(())
    if tree.is_slot:
        symbol = len(symbol_ids) + 1 + tree.slot_index
        value = numbers[tree.slot_index]
    elif tree.left is None:
        symbol = symbol_ids[tree.token]
        value = float(tree.evaluate(()))
    else:
        symbol = symbol_ids[tree.token]
        left = _read_subtree(tree.left, depth + 1, numbers, symbol_ids, nodes)
        right = _read_subtree(tree.right, depth + 1, numbers, symbol_ids, nodes)
        value = _apply(tree.token, left, right)
    nodes.symbols[index] = symbol
    nodes.values[index] = describe_value(value)
    return value


def _apply(operator: str, left: float, right: float) -> float:
    """Return the result of an operation on floats, NaN if it has none."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right if right else math.nan
    if not (0 < abs(left) < _MAX_BASE and abs(right) < _MAX_POWER):
        return math.nan
    power = left**right
    return math.nan if isinstance(power, complex) else power


def describe_value(value: float) -> tuple[float, ...]:
    """Return the features of a value: whether it is negative, zero, its decimal logarithm, whether it is an integer,
    its number of decimals, whether it is 1, and whether it is unknown (NaN or infinite)."""
    if not math.isfinite(value):
        return _UNKNOWN
    size = abs(value)
    logarithm = math.log10(size) if size > _SMALLEST else -_LOGARITHM_SCALE
    logarithm = max(min(logarithm, _MAX_LOGARITHM), _MIN_LOGARITHM)
    num_decimals = _count_decimals(value)
    return (
        float(value < 0),
        float(value == 0),
        logarithm / _LOGARITHM_SCALE,
        float(num_decimals == 0),
        num_decimals / _MAX_DECIMALS,
        float(value == 1),
        0.0,
    )


def _count_decimals(value: float) -> int:
    """Return the number of decimals, at most `_MAX_DECIMALS`."""
    for num_decimals in range(_MAX_DECIMALS):
        scaled = value * 10**num_decimals
        if abs(scaled - round(scaled)) < 1e-6:
            return num_decimals
    return _MAX_DECIMALS
