"""Target trees of a batch, as index tensors for a batched tree decoder."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from hf_mwp.utils.checked_types import checked

from .index_batch import IndexBatch


class TreeBatch(IndexBatch):
    """Index tensors with which a tree decoder scores all nodes of a batch of target trees in two sweeps.

    With teacher forcing the embedding of a subtree does not depend on any goal. An upward sweep therefore embeds all
    subtrees, with one call per height, and a downward sweep expands all goals, with one call per depth. The equations
    are (3) to (8) of GTS (Xie and Sun, IJCAI 2019). The nodes of all problems are packed in flat arrays without
    padding. Only left subtrees and the subtrees inside them are embedded, because goals depend on no other subtree.

    The trees are given as symbol ids in prefix order; ids below `num_operators` are operators, all others leaves.
    Raises `ValueError` if a sequence is not a complete prefix expression.

    The nodes are in the order of the downward sweep: by depth, in each level the left children and then the right
    children, both in the order of their parents. `down_sizes` and `up_sizes` are the numbers of nodes per depth and of
    embedded subtrees per height. See `tensors` in `__init__` for the tensors.
    """

    @checked
    def __init__(self, sequences: Sequence[Sequence[int]], num_operators: int) -> None:
        sizes = list(map(len, sequences))
        longest = max(sizes, default=0)
        roots, parent, left, right = _link(sequences, num_operators)
        row = np.repeat(np.arange(len(sequences)), sizes)
        symbol = _concatenate([np.array(ids, int) for ids in sequences])
        # Downward sweep: collect the nodes of each level and, in the same order, its operators.
        levels = []
        parents = []
        parent_positions = []
        level = roots
        while len(level):
            is_operator = left[level] >= 0
            operators = level[is_operator]
            levels.append(level)
            parents.append(operators)
            parent_positions.append(np.flatnonzero(is_operator))
            level = np.concatenate([left[operators], right[operators]])
        # Upward sweep: collect the embedded subtrees of each height, leaves first.
        heights, position = _up_order(parent, left)
        leaves = _concatenate(heights[:1])
        down = _concatenate(levels)
        operators = _concatenate(parents)
        merged = _concatenate(heights[1:])
        tensors = {
            # Problem and symbol id of each node, and `problem * longest + index in the prefix sequence`.
            "rows": row[down],
            "targets": symbol[down],
            "positions": row[down] * longest + down - roots[row[down]],
            # Position of each operator in its level, symbol id, and left child's position in the upward buffer. If a
            # level has `p` operators, the children of operator `i` are at `i` and `p + i` in the next level.
            "parents": _concatenate(parent_positions),
            "parent_operators": symbol[operators],
            "siblings": position[left[operators]],
            # Leaves in the upward buffer, and inner subtrees with the positions of their children in the buffer.
            "leaf_rows": row[leaves],
            "leaf_symbols": symbol[leaves],
            "merge_operators": symbol[merged],
            "merge_left": position[left[merged]],
            "merge_right": position[right[merged]],
        }
        self.shape = (len(sequences), longest)
        self.down_sizes = tuple(map(len, levels))
        self.up_sizes = tuple(map(len, heights))
        self._lengths = {name: len(tensor) for name, tensor in tensors.items()}
        self._set_buffer(torch.from_numpy(_concatenate(list(tensors.values())).astype(np.int64)))

    @classmethod
    def from_labels(cls, labels: torch.Tensor, num_operators: int) -> Self:
        """Create the trees of a label tensor `(problems, longest)` of prefix ids. Negative values are padding."""
        sequences = []
        for row in labels.tolist():
            sequences.append([symbol for symbol in row if symbol >= 0])
        trees = cls(sequences, num_operators)
        if trees.shape[1] != labels.shape[1]:
            first = trees.positions // max(trees.shape[1], 1)
            trees.positions += first * (labels.shape[1] - trees.shape[1])
            trees.shape = tuple(labels.shape)
        return trees.to(labels.device)


def _link(sequences: Sequence[Sequence[int]], num_operators: int) -> tuple[np.ndarray, ...]:
    """Return the roots, and the parent, left and right child of each node (-1 if there is none), in prefix order."""
    roots: list[int] = []
    parent: list[int] = []
    left: list[int] = []
    right: list[int] = []
    for ids in sequences:
        roots.append(len(parent))
        open_nodes: list[int] = []
        for node, symbol in enumerate(ids, start=len(parent)):
            above = open_nodes[-1] if open_nodes else -1
            if above < 0 and node != roots[-1]:
                raise ValueError(f"{list(ids)} is not a prefix expression: it is complete before the last symbol.")
            parent.append(above)
            left.append(-1)
            right.append(-1)
            if above >= 0 and left[above] < 0:
                left[above] = node
            elif above >= 0:
                right[open_nodes.pop()] = node
            if symbol < num_operators:
                open_nodes.append(node)
        if open_nodes or not len(ids):
            raise ValueError(f"{list(ids)} is not a prefix expression: operands are missing at the end.")
    return np.array(roots, int), np.array(parent, int), np.array(left, int), np.array(right, int)


def _up_order(parent: np.ndarray, left: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the embedded nodes of each height, and the position of each node in the concatenation (or -1)."""
    parents = parent.tolist()
    left_children = left.tolist()
    # Parents come before their children: a left child is embedded, and so is every child of an embedded node.
    is_embedded = [False] * len(parents)
    for node, above in enumerate(parents):
        is_embedded[node] = above >= 0 and (is_embedded[above] or left_children[above] == node)
    # In reverse, children come before their parents.
    heights = [0] * len(parents)
    for node in range(len(parents) - 1, -1, -1):
        above = parents[node]
        if above >= 0:
            heights[above] = max(heights[above], heights[node] + 1)
    nodes = np.flatnonzero(is_embedded)
    node_heights = np.array(heights, int)[nodes]
    by_height = [nodes[node_heights == height] for height in range(node_heights.max(initial=-1) + 1)]
    position = np.full(len(parents), -1)
    position[_concatenate(by_height)] = np.arange(len(nodes))
    return by_height, position


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
    if not arrays:
        return np.zeros(0, int)
    return np.concatenate(arrays)
