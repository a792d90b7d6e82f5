"""Units of numbers, carried through an equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..expressions.operators import PRECEDENCE
from .question import RATIO


# What may be multiplied by itself.
_LENGTHS = ("米", "m", "foot", "inch", "yard", "mile", "meter")


@dataclass
class Dimensions:
    """
    Units of an equation's values.

    Args:
        unit (`str`, *optional*): Unit of the result; `RATIO` for none, `None` if unknown.
        clashes (`int`): Sums and differences of amounts with different units.
        shares_added (`int`): Sums and differences of a share or multiple and an amount with a unit.
        squares (`int`): Products of two amounts with the same unit that is no length.
    """

    unit: str | None = None
    clashes: int = 0
    shares_added: int = 0
    squares: int = 0

    @classmethod
    def of(cls, postfix: Sequence[str], units: Sequence[str | None]) -> Dimensions:
        """Compute the units of a tree in postfix order from those of its numbers; constants have unknown units."""
        found = cls()
        stack: list[str | None] = []
        for token in postfix:
            if token in PRECEDENCE:
                right, left = stack.pop(), stack.pop()
                stack.append(found._apply(token, left, right))
            else:
                stack.append(units[int(token[1:])] if token[0] == "N" else None)
        found.unit = stack.pop()
        return found

    def _apply(self, operator: str, left: str | None, right: str | None) -> str | None:
        if left is None or right is None:
            # A sum has the unit of either part; that of a share and something else is not known.
            return (left or right or None) if operator in "+-" else None
        if operator in "+-":
            self.shares_added += left != right and RATIO in (left, right)
            self.clashes += left != right and RATIO not in (left, right)
            return left if left == right else None
        if operator == "*":
            self.squares += left == right != RATIO and not left.endswith(_LENGTHS)
            return left or right if RATIO in (left, right) else None
        if operator == "/":
            return left if right == RATIO else RATIO if left == right else None
        return None
