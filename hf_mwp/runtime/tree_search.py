"""GTS decoder in NumPy, with greedy and beam search for one problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .encoder import softmax
from .weights import Weights


Linear = tuple[np.ndarray, np.ndarray | float]


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
    complete: bool = False


class NotFiniteError(ArithmeticError):
    """Error for scores that are NaN or infinite, because weights are."""


class TreeDecoder:
    """`GTSDecoder` in NumPy for one problem at a time, from the solver's weights and the decoder's configuration."""

    model_type = "mwp_gts"

    def __init__(self, weights: Weights, config: Mapping[str, Any]) -> None:
        self.num_operators, self.max_length = len(config["operators"]), config["max_length"]
        self.root_goal = config["root_goal"]
        narrows = config["encoder_hidden_size"] != config["hidden_size"]
        self.input_projection = weights.linear("decoder.input_projection") if narrows else None
        self.operators = weights["decoder.operator_embedding.weight"]
        self.constants = weights["decoder.constant_embedding"]
        self.goal_left, self.goal_right, self.children, self.merge = (
            weights.linear(f"decoder.{name}.linear")
            for name in ("goal_left", "goal_right", "generate_children", "merge")
        )
        self.operator_scorer = weights.linear("decoder.operator_scorer")
        self.attention, self.candidate_scorer = (
            (
                weights.linear(f"decoder.{name}.query"),
                weights.linear(f"decoder.{name}.key", bias=False)[0],
                weights[f"decoder.{name}.score.weight"][0],
            )
            for name in ("attention", "candidate_scorer")
        )

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
            states = _apply(self.input_projection, states)
        positions = np.asarray(number_positions, dtype=np.int64)
        candidates = np.concatenate([self.constants, states[positions]])
        missing = np.concatenate([np.zeros(len(self.constants), bool), positions < 0])
        keys, candidate_keys = states @ self.attention[1], candidates @ self.candidate_scorer[1]
        memory = Memory(states, keys, candidates, candidate_keys, missing)
        root = states[0] if self.root_goal == "cls" else states.mean(0)
        beam = [Hypothesis((), 0.0, None, _gated(self.goal_left, root[None])[0])]
        for length in range(max_length):
            beam = self._step(memory, beam, num_beams, max_length - length)
            # Scores never increase, so a single result is final when the best tree is complete.
            if not beam or all(each.complete for each in (beam[:1] if num_return == 1 else beam)):
                break
        finished = sorted((each for each in beam if each.complete), key=lambda each: -each.score)
        return [(each.symbols, each.score) for each in finished[:num_return]]

    def _step(self, memory: Memory, beam: list[Hypothesis], num_beams: int, room: int) -> list[Hypothesis]:
        """Extend each incomplete tree by one of at most `room` further symbols, and keep the best trees."""
        going = [each for each in beam if not each.complete]
        goals = np.stack([each.goal for each in going])
        contexts = softmax(_scores(self.attention, goals, memory.keys)) @ memory.states
        nodes = np.concatenate([goals, contexts], -1)
        candidates = _scores(self.candidate_scorer, nodes, memory.candidate_keys)
        candidates[:, memory.missing] = -np.inf
        scores = np.concatenate([_apply(self.operator_scorer, nodes), candidates], -1)
        highest = scores.max(-1, keepdims=True)
        if not math.isfinite(highest.sum()):
            raise NotFiniteError
        scores -= highest
        log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        # An operator needs room for itself, its two operands, and the operands that open operators still need.
        full = [3 + (each.path.waiting if each.path else 0) > room for each in going]
        log_probs[full, : self.num_operators] = -np.inf
        # Rank the symbols of all trees together; a stable sort prefers earlier trees and symbols of equal scores.
        totals = (np.array([each.score for each in going], np.float32)[:, None] + log_probs).ravel()
        best = np.argsort(-totals, kind="stable")[:num_beams]
        longer = []
        for place in best[np.isfinite(totals[best])]:
            row, symbol = divmod(int(place), log_probs.shape[1])
            old = going[row]
            symbols = (*old.symbols, symbol)
            longer.append(Hypothesis(symbols, float(totals[place]), old.path, old.goal, contexts[row]))
        complete = [each for each in beam if each.complete]
        kept = sorted(complete + longer, key=lambda each: -each.score)[:num_beams]
        self._place([each for each in kept if not each.complete], memory)
        return kept

    def _place(self, trees: list[Hypothesis], memory: Memory) -> None:
        """Update path and goal of each tree after its last symbol: operators extend the path, leaves shorten it."""
        inner = [tree for tree in trees if tree.symbols[-1] < self.num_operators]
        leaves = [tree for tree in trees if tree.symbols[-1] >= self.num_operators]
        # An operator opens two subtrees: go on with the left one, and keep the goal of the right one.
        if inner:
            symbols = [tree.symbols[-1] for tree in inner]
            goals, contexts = (np.stack([getattr(tree, name) for tree in inner]) for name in ("goal", "context"))
            children = _gated(self.children, np.concatenate([goals, contexts, self.operators[symbols]], -1))
            left, right = _halves(children)
            for tree, goal, right_goal in zip(inner, _gated(self.goal_left, left), right, strict=True):
                waiting = 1 + (tree.path.waiting if tree.path else 0)
                tree.path, tree.goal = OpenOperator(tree.symbols[-1], right_goal, None, tree.path, waiting), goal
        if leaves:
            self._close(leaves, [memory.candidates[tree.symbols[-1] - self.num_operators] for tree in leaves])

    def _close(self, trees: list[Hypothesis], subtrees: list[np.ndarray]) -> None:
        """Merge the subtrees that new leaves complete, and set the goal of the next right child."""
        # A leaf that is a right child completes its operator, which may itself complete the next one, and so on.
        while True:
            ends = [at for at, tree in enumerate(trees) if tree.path and tree.path.left_subtree is not None]
            if not ends:
                break
            paths = [trees[place].path for place in ends]
            parts = (
                self.operators[[path.operator for path in paths]],
                np.stack([path.left_subtree for path in paths]),
                np.stack([subtrees[place] for place in ends]),
            )
            for place, path, merged in zip(ends, paths, _gated(self.merge, np.concatenate(parts, -1)), strict=True):
                trees[place].path, subtrees[place] = path.rest, merged
        # A left child sets the goal of its sibling; without an open operator, the tree is complete.
        for tree in trees:
            tree.complete = tree.path is None
        still = [(tree, subtree) for tree, subtree in zip(trees, subtrees, strict=True) if not tree.complete]
        if still:
            inputs = np.stack([np.concatenate([subtree, tree.path.right_goal]) for tree, subtree in still])
            for (tree, subtree), goal in zip(still, _gated(self.goal_right, inputs), strict=True):
                path = tree.path
                tree.path = OpenOperator(path.operator, path.right_goal, subtree, path.rest, path.waiting - 1)
                tree.goal = goal


def _apply(linear: Linear, x: np.ndarray) -> np.ndarray:
    return x @ linear[0] + linear[1]


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def _gated(linear: Linear, x: np.ndarray) -> np.ndarray:
    """Compute `tanh(W x + b) * sigmoid(W_g x + b_g)` with both linear layers in one."""
    value, gate = _halves(_apply(linear, x))
    return np.tanh(value) / (1 + np.exp(-gate))


def _scores(scorer: tuple[Linear, np.ndarray, np.ndarray], queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Compute additive scores `(n, candidates)` of queries `(n, ...)` and projected keys `(candidates, H)`."""
    hidden = keys[None] + _apply(scorer[0], queries)[:, None]
    return np.tanh(hidden, out=hidden) @ scorer[2]
