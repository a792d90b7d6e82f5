"""GTS decoder in NumPy, with greedy and beam search for one problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .encoder import apply_linear, softmax
from .weights import Linear, Weights


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
    """Partial tree."""

    symbols: tuple[int, ...]  # in prefix order
    score: float  # log probability of the symbols
    path: OpenOperator | None  # to the next node
    goal: np.ndarray  # of the next node
    context: np.ndarray | None = None  # of the last symbol's node
    subtree: np.ndarray | None = None  # embedding of the subtree that the last symbol completes
    complete: bool = False

    @property
    def waiting(self) -> int:
        """Number of operators on the path whose left subtree is incomplete."""
        return self.path.waiting if self.path else 0


class Scorer(NamedTuple):
    """Additive scorer of keys by queries."""

    query: Linear
    key: np.ndarray  # matrix without bias
    score: np.ndarray  # vector

    @classmethod
    def load(cls, weights: Weights, prefix: str) -> Self:
        """Read the weights of a scorer."""
        key, _ = weights.linear(f"{prefix}.key", bias=False)
        return cls(weights.linear(f"{prefix}.query"), key, weights[f"{prefix}.score.weight"][0])

    def __call__(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Compute the scores `(n, candidates)` of queries `(n, ...)` and projected keys `(candidates, H)`."""
        hidden = keys[None] + apply_linear(self.query, queries)[:, None]
        return np.tanh(hidden, out=hidden) @ self.score


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
        self.operators = weights["decoder.operator_embedding.weight"]
        self.constants = weights["decoder.constant_embedding"]
        self.goal_left = weights.linear("decoder.goal_left.linear")
        self.goal_right = weights.linear("decoder.goal_right.linear")
        self.children = weights.linear("decoder.generate_children.linear")
        self.merge = weights.linear("decoder.merge.linear")
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
    ) -> list[tuple[tuple[int, ...], float]]:
        """Return prefix ids and log probabilities of the `num_return` (at most `num_beams`) most probable trees, best
        first, from hidden states `(S, H)` and the token index of each number, -1 for numbers without a token. Raises
        `NotFiniteError` if scores are NaN or infinite."""
        max_length = max_length or self.max_length
        if self.input_projection is not None:
            states = apply_linear(self.input_projection, states)
        positions = np.asarray(number_positions, dtype=np.int64)
        candidates = np.concatenate([self.constants, states[positions]])
        missing = np.concatenate([np.zeros(len(self.constants), bool), positions < 0])
        keys = states @ self.attention.key
        candidate_keys = candidates @ self.candidate_scorer.key
        memory = Memory(states, keys, candidates, candidate_keys, missing)
        root = states[0] if self.root_goal == "cls" else states.mean(0)
        beam = [Hypothesis((), 0.0, None, _gated(self.goal_left, root[None])[0])]
        for length in range(max_length):
            beam = self._step(memory, beam, num_beams, max_length - length)
            # Scores never increase, so a single result is final when the best tree is complete.
            pending = beam[:1] if num_return == 1 else beam
            if all(tree.complete for tree in pending):
                break
        complete = [tree for tree in beam if tree.complete]
        return [(tree.symbols, tree.score) for tree in complete[:num_return]]

    def _step(self, memory: Memory, beam: list[Hypothesis], num_beams: int, room: int) -> list[Hypothesis]:
        """Extend each incomplete tree by one of at most `room` further symbols, and return the best trees in order."""
        trees = [tree for tree in beam if not tree.complete]
        goals = np.stack([tree.goal for tree in trees])
        contexts = softmax(self.attention(goals, memory.keys)) @ memory.states
        nodes = np.concatenate([goals, contexts], -1)
        candidate_scores = self.candidate_scorer(nodes, memory.candidate_keys)
        candidate_scores[:, memory.missing] = -np.inf
        scores = np.concatenate([apply_linear(self.operator_scorer, nodes), candidate_scores], -1)
        highest = scores.max(-1, keepdims=True)
        if not math.isfinite(highest.sum()):
            raise NotFiniteError
        scores -= highest
        log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
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
            symbols = (*tree.symbols, symbol)
            longer.append(Hypothesis(symbols, float(totals[index]), tree.path, tree.goal, contexts[row]))
        complete = [tree for tree in beam if tree.complete]
        beam = sorted(complete + longer, key=lambda tree: -tree.score)[:num_beams]
        # Update the path and the goal of the longer trees that stay in the beam.
        longer = [tree for tree in beam if not tree.complete]
        self._open([tree for tree in longer if tree.symbols[-1] < self.num_operators])
        self._close([tree for tree in longer if tree.symbols[-1] >= self.num_operators], memory)
        return beam

    def _open(self, trees: list[Hypothesis]) -> None:
        """Extend the path of each tree by its last symbol, an operator, and set the goal of the left child."""
        if not trees:
            return
        symbols = [tree.symbols[-1] for tree in trees]
        goals = np.stack([tree.goal for tree in trees])
        contexts = np.stack([tree.context for tree in trees])
        inputs = np.concatenate([goals, contexts, self.operators[symbols]], -1)
        left, right_goals = _halves(_gated(self.children, inputs))
        left_goals = _gated(self.goal_left, left)
        for tree, left_goal, right_goal in zip(trees, left_goals, right_goals, strict=True):
            tree.path = OpenOperator(tree.symbols[-1], right_goal, None, tree.path, tree.waiting + 1)
            tree.goal = left_goal

    def _close(self, trees: list[Hypothesis], memory: Memory) -> None:
        """Merge the subtrees that the last symbol of each tree, a leaf, completes, and set the goal of the next right
        child."""
        for tree in trees:
            tree.subtree = memory.candidates[tree.symbols[-1] - self.num_operators]
        # A leaf that is a right child completes its operator, which may itself complete the next one, and so on.
        while True:
            right = [tree for tree in trees if tree.path and tree.path.left_subtree is not None]
            if not right:
                break
            operators = self.operators[[tree.path.operator for tree in right]]
            left_subtrees = np.stack([tree.path.left_subtree for tree in right])
            right_subtrees = np.stack([tree.subtree for tree in right])
            merged = _gated(self.merge, np.concatenate([operators, left_subtrees, right_subtrees], -1))
            for tree, subtree in zip(right, merged, strict=True):
                tree.path = tree.path.rest
                tree.subtree = subtree
        # A left child sets the goal of its sibling; without an open operator, the tree is complete.
        for tree in trees:
            tree.complete = tree.path is None
        left = [tree for tree in trees if not tree.complete]
        if left:
            inputs = np.stack([np.concatenate([tree.subtree, tree.path.right_goal]) for tree in left])
            for tree, goal in zip(left, _gated(self.goal_right, inputs), strict=True):
                path = tree.path
                tree.path = OpenOperator(path.operator, path.right_goal, tree.subtree, path.rest, path.waiting - 1)
                tree.goal = goal


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def _gated(linear: Linear, x: np.ndarray) -> np.ndarray:
    """Compute `tanh(W x + b) * sigmoid(W_g x + b_g)` with both linear layers in one."""
    value, gate = _halves(apply_linear(linear, x))
    return np.tanh(value) / (1 + np.exp(-gate))
