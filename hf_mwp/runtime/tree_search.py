"""GTS decoder in NumPy, with greedy and beam search for one problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .encoder import apply_linear, softmax
from .few_rows_linear import FewRowsLinear
from .weights import Weights


@dataclass(frozen=True)
class OpenOperator:
    """Operator on the path from the root to the next node."""

    operator: int
    right_goal: np.ndarray  # goal of the right child
    left_subtree: np.ndarray | None  # embedding of the left subtree, `None` until it is complete
    rest: OpenOperator | None  # path above the operator
    waiting: int  # operators on the path, including this one, whose left subtree is incomplete


@dataclass(frozen=True)
class Memory:
    """Encoded problem of `S` tokens and `C` candidates: the constants, then the numbers."""

    states: np.ndarray  # (S, H), hidden states of the tokens
    keys: np.ndarray  # (S, H), their attention keys
    candidates: np.ndarray  # (C, H), embeddings
    candidate_keys: np.ndarray  # (C, H), their keys in the candidate scorer
    missing: np.ndarray  # (C,), numbers without a token


@dataclass
class Hypothesis:
    """Partial or complete tree."""

    symbols: tuple[int, ...]  # in prefix order
    score: float  # log probability of the symbols
    path: OpenOperator | None  # to the next node
    complete: bool = False
    row: int = 0  # of the tree without its last symbol, among the incomplete trees of the step before
    goal: np.ndarray | None = None  # of the next node
    subtree: np.ndarray | None = None  # embedding of the subtree that the last symbol completes

    @property
    def waiting(self) -> int:
        """Number of operators on the path whose left subtree is incomplete."""
        return self.path.waiting if self.path else 0


class Scorer(NamedTuple):
    """Additive scorer of keys by queries."""

    query: FewRowsLinear
    key: np.ndarray  # matrix without bias
    score: np.ndarray  # vector

    @classmethod
    def load(cls, weights: Weights, prefix: str) -> Self:
        """Read the weights of a scorer."""
        key, _ = weights.linear(f"{prefix}.key", bias=False)
        query = FewRowsLinear(*weights.linear(f"{prefix}.query"))
        return cls(query, key, weights[f"{prefix}.score.weight"][0])

    def __call__(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Compute the scores `(n, candidates)` of queries `(n, ...)` and projected keys `(candidates, H)`."""
        hidden = keys + self.query(queries)[:, None]
        return np.tanh(hidden, out=hidden) @ self.score


class OperatorLayer(NamedTuple):
    """Gated layer of an operator's embedding and two further vectors. The embedding's share of the output is computed
    when the layer is loaded, and is the bias of the operator."""

    linear: FewRowsLinear
    biases: np.ndarray  # (operators, 2 * out)

    @classmethod
    def load(cls, weights: Weights, prefix: str, operators: np.ndarray, first: bool) -> Self:
        """Read the weights of a layer whose inputs contain the operators' embeddings at the start or at the end."""
        matrix, bias = weights.linear(prefix)
        size = operators.shape[1]
        if first:
            operator_matrix, matrix = np.split(matrix, [size])
        else:
            matrix, operator_matrix = np.split(matrix, [-size])
        return cls(FewRowsLinear(matrix, np.zeros_like(bias)), operators @ operator_matrix + bias)

    def __call__(self, operators: Sequence[int], vectors: np.ndarray) -> np.ndarray:
        """Compute the outputs `(n, out)` of operators and the concatenated vectors `(n, 2 H)`."""
        return _gated(self.linear(vectors) + self.biases[operators])


class NotFiniteError(ArithmeticError):
    """Error for scores that are NaN or infinite, because weights are."""


class TreeDecoder:
    """`GTSDecoder` in NumPy for one problem at a time, from the solver's weights and the decoder's configuration."""

    model_type = "mwp_gts"

    def __init__(self, weights: Weights, config: Mapping[str, Any]) -> None:
        self.num_operators = len(config["operators"])
        self.max_length = config["max_length"]
        self.root_goal = config["root_goal"]
        self.input_projection = None
        if config["encoder_hidden_size"] != config["hidden_size"]:
            self.input_projection = weights.linear("decoder.input_projection")
        self.constants = weights["decoder.constant_embedding"]
        self.goal_left = FewRowsLinear(*weights.linear("decoder.goal_left.linear"))
        self.goal_right = FewRowsLinear(*weights.linear("decoder.goal_right.linear"))
        operators = weights["decoder.operator_embedding.weight"]
        self.children = OperatorLayer.load(weights, "decoder.generate_children.linear", operators, first=False)
        self.merge = OperatorLayer.load(weights, "decoder.merge.linear", operators, first=True)
        self.operator_scorer = weights.linear("decoder.operator_scorer")
        self.attention = Scorer.load(weights, "decoder.attention")
        self.candidate_scorer = Scorer.load(weights, "decoder.candidate_scorer")

    def search(
        self,
        states: np.ndarray,
        number_positions: Sequence[int],
        num_beams: int = 1,
        num_return: int = 1,
        max_length: int | None = None,
        score_margin: float | None = None,
    ) -> list[tuple[tuple[int, ...], float]]:
        """
        Search for the most probable trees of a problem.

        Args:
            states (`np.ndarray` of shape `(S, H)`): Hidden states of the tokens.
            number_positions (`Sequence[int]`): Token index of each number, -1 for numbers without a token.
            num_beams (`int`, *optional*, defaults to 1): Number of trees that a step keeps; 1 is greedy search.
            num_return (`int`, *optional*, defaults to 1): Number of trees to return, at most `num_beams`.
            max_length (`int`, *optional*): Maximum number of symbols of a tree. Defaults to that of the decoder.
            score_margin (`float`, *optional*): Incomplete trees whose log probability is more than this below that of
                the best tree are dropped.

        Returns:
            `list[tuple[tuple[int, ...], float]]`: Prefix ids and log probabilities of complete trees, best first.

        Raises:
            NotFiniteError: Scores are NaN or infinite.
        """
        max_length = max_length or self.max_length
        memory = self._encode(states, number_positions)
        root = memory.states[0] if self.root_goal == "cls" else memory.states.mean(0)
        beam = [Hypothesis((), 0.0, None, goal=_gated(self.goal_left(root[None]))[0])]
        for length in range(max_length):
            nodes = self._nodes(memory, beam)
            beam = self._extend(memory, beam, nodes, num_beams, max_length - length)
            beam = _cut(beam, num_return, score_margin)
            self._update(memory, beam, nodes)
            if all(tree.complete for tree in beam):
                break
        complete = [tree for tree in beam if tree.complete]
        return [(tree.symbols, tree.score) for tree in complete[:num_return]]

    def _encode(self, states: np.ndarray, number_positions: Sequence[int]) -> Memory:
        """Compute the arrays that all steps read."""
        if self.input_projection is not None:
            states = apply_linear(self.input_projection, states)
        positions = np.asarray(number_positions, dtype=np.int64)
        candidates = np.concatenate([self.constants, states[positions]])
        missing = np.concatenate([np.zeros(len(self.constants), bool), positions < 0])
        keys = states @ self.attention.key
        candidate_keys = candidates @ self.candidate_scorer.key
        return Memory(states, keys, candidates, candidate_keys, missing)

    def _nodes(self, memory: Memory, beam: list[Hypothesis]) -> np.ndarray:
        """Return the goals of the next nodes of the incomplete trees, and their contexts, as `(n, 2 H)`."""
        goals = [tree.goal for tree in beam if not tree.complete]
        goals = _rows(goals, len(goals))
        contexts = softmax(self.attention(goals, memory.keys)) @ memory.states
        return np.concatenate([goals, contexts], -1)

    def _extend(
        self, memory: Memory, beam: list[Hypothesis], nodes: np.ndarray, num_beams: int, room: int
    ) -> list[Hypothesis]:
        """Extend each incomplete tree by one of at most `room` further symbols, and return the best trees in order."""
        trees = [tree for tree in beam if not tree.complete]
        log_probs = self._log_probs(memory, nodes)
        # An operator needs room for itself, its two operands, and the operands that open operators still need.
        full = [3 + tree.waiting > room for tree in trees]
        log_probs[full, : self.num_operators] = -np.inf
        # Rank the symbols of all trees together; a stable sort prefers earlier trees and symbols of equal scores.
        tree_scores = np.array([tree.score for tree in trees], np.float32)
        totals = (tree_scores[:, None] + log_probs).ravel()
        best = np.argsort(-totals, kind="stable")[:num_beams]
        longer = []
        for index in best[np.isfinite(totals[best])]:
            row, symbol = divmod(int(index), log_probs.shape[1])
            tree = trees[row]
            # A leaf completes the tree if no operator waits for a left subtree, and so for a right one.
            complete = symbol >= self.num_operators and tree.waiting == 0
            symbols = (*tree.symbols, symbol)
            longer.append(Hypothesis(symbols, float(totals[index]), tree.path, complete, row))
        finished = [tree for tree in beam if tree.complete]
        return sorted(finished + longer, key=lambda tree: -tree.score)[:num_beams]

    def _log_probs(self, memory: Memory, nodes: np.ndarray) -> np.ndarray:
        """Compute the log probabilities `(n, symbols)` of operators, constants and numbers at nodes `(n, 2 H)`."""
        candidate_scores = self.candidate_scorer(nodes, memory.candidate_keys)
        candidate_scores[:, memory.missing] = -np.inf
        scores = np.concatenate([apply_linear(self.operator_scorer, nodes), candidate_scores], -1)
        highest = scores.max(-1, keepdims=True)
        if not math.isfinite(highest.sum()):
            raise NotFiniteError
        scores -= highest
        return scores - np.log(np.exp(scores).sum(-1, keepdims=True))

    def _update(self, memory: Memory, beam: list[Hypothesis], nodes: np.ndarray) -> None:
        """Update the paths and goals of the incomplete trees by their last symbols."""
        operators = []
        leaves = []
        for tree in beam:
            if tree.complete:
                continue
            is_operator = tree.symbols[-1] < self.num_operators
            (operators if is_operator else leaves).append(tree)
        self._open(operators, nodes)
        self._close(leaves, memory)

    def _open(self, trees: list[Hypothesis], nodes: np.ndarray) -> None:
        """Extend the path of each tree by its last symbol, an operator, and set the goal of the left child."""
        if not trees:
            return
        operators = [tree.symbols[-1] for tree in trees]
        parents = nodes[[tree.row for tree in trees]]
        left, right_goals = _halves(self.children(operators, parents))
        left_goals = _gated(self.goal_left(left))
        for tree, left_goal, right_goal in zip(trees, left_goals, right_goals, strict=True):
            tree.path = OpenOperator(tree.symbols[-1], right_goal, None, tree.path, tree.waiting + 1)
            tree.goal = left_goal

    def _close(self, trees: list[Hypothesis], memory: Memory) -> None:
        """Merge the subtrees that the last symbol of each tree, a leaf, completes, and set the goal of the next right
        child."""
        if not trees:
            return
        for tree in trees:
            tree.subtree = memory.candidates[tree.symbols[-1] - self.num_operators]
        # A leaf that is a right child completes its operator, which may itself complete the next one, and so on.
        right = trees
        while True:
            right = [tree for tree in right if tree.path.left_subtree is not None]
            if not right:
                break
            operators = [tree.path.operator for tree in right]
            subtrees = []
            for tree in right:
                subtrees += [tree.path.left_subtree, tree.subtree]
            merged = self.merge(operators, _rows(subtrees, len(right)))
            for tree, subtree in zip(right, merged, strict=True):
                tree.path = tree.path.rest
                tree.subtree = subtree
        # The subtree that remains is the left one of its operator, and sets the goal of the right child.
        inputs = []
        for tree in trees:
            inputs += [tree.subtree, tree.path.right_goal]
        right_goals = _gated(self.goal_right(_rows(inputs, len(trees))))
        for tree, goal in zip(trees, right_goals, strict=True):
            path = tree.path
            tree.path = OpenOperator(path.operator, path.right_goal, tree.subtree, path.rest, path.waiting - 1)
            tree.goal = goal


def _cut(beam: list[Hypothesis], num_return: int, score_margin: float | None) -> list[Hypothesis]:
    """Drop incomplete trees that cannot become one of the best `num_return`, because scores never increase, and those
    whose score is more than the margin below the best one, from a beam in the order of scores."""
    complete = [tree for tree in beam if tree.complete]
    lowest = -math.inf
    if len(complete) >= num_return:
        lowest = complete[num_return - 1].score
    if score_margin is not None and beam:
        lowest = max(lowest, beam[0].score - score_margin)
    return [tree for tree in beam if tree.complete or tree.score >= lowest]


def _rows(vectors: list[np.ndarray], num_rows: int) -> np.ndarray:
    """Concatenate vectors to rows `(num_rows, ...)`; faster than `np.stack`."""
    return np.concatenate(vectors).reshape(num_rows, -1)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def _gated(x: np.ndarray) -> np.ndarray:
    """Compute `tanh(value) * sigmoid(gate)` of the halves of a layer's output."""
    value, gate = _halves(x)
    return np.tanh(value) / (1 + np.exp(-gate))
