"""Thoughts of ATHENA (expressions as flattened multisets), and their expansion in rounds of candidates."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hf_mwp.runtime.expressions.expression import MAX_NODES
from hf_mwp.runtime.output_vocabulary import OutputVocabulary


TRANSFORMS = ("NEG", "INV", "ROOT", "HALF")
AGGREGATES = ("ADD", "MUL")
OPERATIONS = (*TRANSFORMS, *AGGREGATES)  # in the order of their ids; an initial thought has the operation -1
NUMBER = "NUM"
CONSTANT = "CON"
# Operator, operator of inverse terms, their transform, and neutral element.
_SUM = ("+", "-", "NEG", "0")
_PRODUCT = ("*", "/", "INV", "1")
OUTPUT_CONSTANTS = ("0", "1", "2", "0.5")  # which expressions of thoughts may need, see `ThoughtTable.prefix`


class ThoughtTable:
    """Table of thoughts with their ids. Two thoughts have the same id if and only if they have the same operation and
    the same multiset of children. Nested sums and nested products are flattened; nothing else is simplified."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.children: list[tuple[int, ...]] = []
        self._ids: dict[tuple[str, tuple[int, ...]], int] = {}
        self.prefix_lengths: list[int] = []  # numbers of symbols of `prefix`

    def add(self, kind: str, *children: int) -> int:
        """Return the id of a thought. `children` of a number or constant is its index in the text or vocabulary."""
        if kind in AGGREGATES:
            # Replace a nested sum or product by its children.
            flat: list[int] = []
            for child in children:
                flat += self.children[child] if self.kinds[child] == kind else (child,)
            children = tuple(sorted(flat))
        thought = self._ids.setdefault((kind, children), len(self.kinds))
        if thought == len(self.kinds):
            self.kinds.append(kind)
            self.children.append(children)
            self.prefix_lengths.append(self._prefix_length(kind, children))
        return thought

    def _prefix_length(self, kind: str, children: tuple[int, ...]) -> int:
        if kind in (NUMBER, CONSTANT):
            return 1
        if kind not in AGGREGATES:
            return 2 + self.prefix_lengths[children[0]]
        inverse = "NEG" if kind == "ADD" else "INV"
        num_symbols = len(children) - 1
        is_direct = False
        for child in children:
            num_symbols += self.prefix_lengths[child]
            if self.kinds[child] == inverse:
                # An inverse child is written by `-` or `/`, without its own two symbols.
                num_symbols -= 2
            else:
                is_direct = True
        # 0 or 1 leads if no child is direct.
        return num_symbols if is_direct else num_symbols + 2

    def prefix(self, thought: int, vocabulary: OutputVocabulary) -> list[int]:
        """Return a thought as prefix ids with the same value. Direct terms are joined by `+` or `*`, then `NEG`
        children of a sum by `-` and `INV` children of a product by `/`. A single `NEG` is `0 - a`, a single `INV` is
        `1 / a`, `HALF` is `a / 2` and `ROOT` is `a ^ 0.5`."""
        operation = self.kinds[thought]
        children = self.children[thought]
        if operation == NUMBER:
            return [vocabulary.num_symbols + children[0]]
        if operation == CONSTANT:
            return [vocabulary.num_operators + children[0]]
        symbol = vocabulary.token_to_id
        if operation == "HALF":
            return [symbol("/"), *self.prefix(children[0], vocabulary), symbol("2")]
        if operation == "ROOT":
            return [symbol("^"), *self.prefix(children[0], vocabulary), symbol("0.5")]
        notation = _PRODUCT if operation in ("MUL", "INV") else _SUM
        operator, inverse_operator, inverse, neutral = notation
        # A single `NEG` or `INV` is a sum or product with one inverse term.
        terms = (thought,) if operation == inverse else children
        direct = []
        inverted = []
        for term in terms:
            if self.kinds[term] == inverse:
                inverted.append(self.prefix(self.children[term][0], vocabulary))
            else:
                direct.append(self.prefix(term, vocabulary))
        if not direct:
            direct = [[symbol(neutral)]]
        # Left-associative: all operators come first, in reverse order.
        ids = [symbol(inverse_operator)] * len(inverted) + [symbol(operator)] * (len(direct) - 1)
        for term_ids in direct + inverted:
            ids += term_ids
        return ids

    def contains(self, thought: int, part: int) -> bool:
        """Return whether `part` is a node of a thought, or a sub-multiset of the children of a node."""
        operation = self.kinds[thought]
        children = self.children[thought]
        if operation == self.kinds[part] and Counter(self.children[part]) <= Counter(children):
            return True
        return operation not in (NUMBER, CONSTANT) and any(self.contains(child, part) for child in children)


class Candidate(NamedTuple):
    """Thought (expression with an embedding) that may join the pool."""

    operation: int  # index into `OPERATIONS`, -1 for an initial thought
    left: int  # index in the pool, or among the initial thoughts
    right: int  # index in the pool, -1 for operations on one thought
    thought: int  # id in the `ThoughtTable`


class Expansion:
    """
    Candidates of a problem, round by round (Kim et al., "ATHENA", EMNLP 2023, section 3; in the order of the authors'
    implementation).

    Round 0 has the initial thoughts. Odd rounds transform the thoughts that are new since the last odd round. Even
    rounds combine the thoughts that are new since the last even round with all thoughts of the pool. A candidate is
    dropped if it is already in the pool or in the same round, or too long for an [`Expression`] (flattened sums can
    double in each even round); rejected candidates may return. Limits are 0 for none; `max_rounds` counts round 0.
    """

    def __init__(
        self,
        table: ThoughtTable,
        initial: Sequence[int],
        transforms: Sequence[str] = TRANSFORMS,
        max_rounds: int = 0,
        max_candidates: int = 0,
    ) -> None:
        self.table = table
        self.initial = initial
        self.transforms = transforms
        self.max_rounds = max_rounds
        self.max_candidates = max_candidates
        # Thoughts that were kept, and whether a round had more candidates than `max_candidates`.
        self.pool: list[int] = []
        self.was_cut = False
        self.round = 0
        self._seen = [0, 0]  # pool sizes at the last even and the last odd round

    def next_round(self) -> list[Candidate] | None:
        """Return the candidates of the next round, or `None` if the limit is reached or no thoughts are new."""
        if 0 < self.max_rounds <= self.round:
            return None
        if self.round == 0:
            candidates = [Candidate(-1, index, -1, thought) for index, thought in enumerate(self.initial)]
        else:
            # Transforms and aggregates take turns, each on thoughts that it has not seen yet.
            is_odd = self.round % 2
            start = self._seen[is_odd]
            self._seen[is_odd] = len(self.pool)
            if start == len(self.pool):
                return None
            operations = self.transforms if is_odd else AGGREGATES
            candidates = self._new_candidates(operations, start)
        self.round += 1
        return candidates

    def keep(self, chosen: Iterable[Candidate]) -> None:
        """Add candidates to the pool."""
        self.pool += [candidate.thought for candidate in chosen]

    def _new_candidates(self, operations: Sequence[str], start: int) -> list[Candidate]:
        """Return the candidates of a round's operations that are neither in the pool nor too long."""
        candidates: list[Candidate] = []
        seen = set(self.pool)
        # The limit is shared equally by the operations of a round.
        limit = math.inf
        if self.max_candidates:
            limit = max(self.max_candidates // max(len(operations), 1), 1)
        for operation in operations:
            first = len(candidates)
            for candidate in self._apply(operation, start):
                if candidate.thought in seen or self.table.prefix_lengths[candidate.thought] > MAX_NODES:
                    continue
                if len(candidates) - first == limit:
                    self.was_cut = True
                    break
                seen.add(candidate.thought)
                candidates.append(candidate)
        return candidates

    def _apply(self, name: str, start: int) -> Iterator[Candidate]:
        """Yield the candidates of an operation on the thoughts of the pool that are new (from `start` on)."""
        operation = OPERATIONS.index(name)
        size = len(self.pool)
        if name in AGGREGATES:
            # At least one of both thoughts is new: old with new, then new with new.
            for left in range(size):
                for right in range(max(left, start), size):
                    thought = self.table.add(name, self.pool[left], self.pool[right])
                    yield Candidate(operation, left, right, thought)
        else:
            for index in range(start, size):
                yield Candidate(operation, index, -1, self.table.add(name, self.pool[index]))
