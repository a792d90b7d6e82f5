"""Thoughts of ATHENA: expressions as flattened multisets, with the same id for equal thoughts."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.output_vocabulary import OutputVocabulary


TRANSFORMS = ("NEG", "INV", "ROOT", "HALF")
AGGREGATES = ("ADD", "MUL")
NUMBER, CONSTANT = "NUM", "CON"


class ThoughtTable:
    """
    Table of thoughts with their ids. Two thoughts have the same id if and only if they have the same operation and the
    same multiset of children. Nested sums and nested products are flattened; nothing else is simplified.
    """

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.children: list[tuple[int, ...]] = []
        self._ids: dict[tuple[str, tuple[int, ...]], int] = {}
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self.kinds)

    def number(self, slot: int) -> int:
        """Return the thought of number `slot` of the text."""
        return self._intern(NUMBER, (slot,))

    def constant(self, index: int) -> int:
        """Return the thought of the constant with this index in the output vocabulary."""
        return self._intern(CONSTANT, (index,))

    def transform(self, operation: str, operand: int) -> int:
        """Return the `NEG`, `INV`, `ROOT` or `HALF` of a thought."""
        return self._intern(operation, (operand,))

    def aggregate(self, operation: str, left: int, right: int) -> int:
        """Return the sum (`ADD`) or product (`MUL`) of two thoughts."""
        children = self._flat(operation, left) + self._flat(operation, right)
        return self._intern(operation, tuple(sorted(children)))

    def _flat(self, operation: str, thought: int) -> tuple[int, ...]:
        return self.children[thought] if self.kinds[thought] == operation else (thought,)

    def _intern(self, kind: str, children: tuple[int, ...]) -> int:
        known = self._ids.setdefault((kind, children), len(self.kinds))
        if known == len(self.kinds):
            self.kinds.append(kind)
            self.children.append(children)
            self._sizes.append(self._size(kind, children))
        return known

    def _size(self, kind: str, children: tuple[int, ...]) -> int:
        if kind in (NUMBER, CONSTANT):
            return 1
        if kind not in AGGREGATES:
            return 2 + self._sizes[children[0]]
        inverse = "NEG" if kind == "ADD" else "INV"
        taken = [child for child in children if self.kinds[child] == inverse]
        # An inverse child is written by `-` or `/`, without its own two symbols. 0 or 1 leads if no child is direct.
        size = sum(self._sizes[child] for child in children) - 2 * len(taken) + len(children) - 1
        return size + 2 * (len(taken) == len(children))

    def prefix_length(self, thought: int) -> int:
        """Return the number of symbols of [`~ThoughtTable.prefix`]."""
        return self._sizes[thought]

    def prefix(self, thought: int, vocabulary: OutputVocabulary) -> list[int]:
        """
        Return a thought as prefix ids with the same value. Direct terms are joined by `+` or `*`, then `NEG` children
        of a sum by `-` and `INV` children of a product by `/`. A single `NEG` is `0 - a`, a single `INV` is `1 / a`,
        `HALF` is `a / 2` and `ROOT` is `a ^ 0.5`.
        """
        kind, children = self.kinds[thought], self.children[thought]
        if kind == NUMBER:
            return [vocabulary.num_symbols + children[0]]
        if kind == CONSTANT:
            return [vocabulary.num_operators + children[0]]
        symbol = vocabulary.token_to_id
        if kind == "HALF":
            return [symbol("/"), *self.prefix(children[0], vocabulary), symbol("2")]
        if kind == "ROOT":
            return [symbol("^"), *self.prefix(children[0], vocabulary), symbol("0.5")]
        joined, inverse, neutral = ("*", "INV", "1") if kind in ("MUL", "INV") else ("+", "NEG", "0")
        terms = (thought,) if kind == inverse else children
        direct = [self.prefix(each, vocabulary) for each in terms if self.kinds[each] != inverse]
        taken = [self.prefix(self.children[each][0], vocabulary) for each in terms if self.kinds[each] == inverse]
        first, *rest = direct or [[symbol(neutral)]]
        operators = [joined] * len(rest) + [{"+": "-", "*": "/"}[joined]] * len(taken)
        # Left-associative: all operators come first, in reverse order.
        return [*map(symbol, reversed(operators)), *first, *(each for term in (*rest, *taken) for each in term)]

    def contains(self, thought: int, part: int) -> bool:
        """Return whether `part` is a node of a thought, or a sub-multiset of the children of a node."""
        kind, children = self.kinds[thought], self.children[thought]
        if kind == self.kinds[part] and _is_submultiset(self.children[part], children):
            return True
        return kind not in (NUMBER, CONSTANT) and any(self.contains(child, part) for child in children)


def _is_submultiset(part: Sequence[int], whole: Sequence[int]) -> bool:
    return all(part.count(each) <= whole.count(each) for each in set(part))
