"""Target trees of a batch, as index tensors for a batched tree decoder."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from hf_mwp.utils.checked_types import checked

from .index_batch import IndexBatch


MIN_SIZE = 16
LEVELS_PER_GRAPH = 4


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

    With `pad`, the numbers of levels below the roots and of heights above the leaves are multiples of 4. They have 16,
    64, 256, ... operators or subtrees, so that compiled models need only a few graphs. Nodes that pad them have the
    position `num_positions`, behind those of the problems, and must not be counted.
    """

    @checked
    def __init__(self, sequences: Sequence[Sequence[int]], num_operators: int, pad: bool = False) -> None:
        sizes = list(map(len, sequences))
        longest = max(sizes, default=0)
        roots, parent, left, right = _link(sequences, num_operators)
        row = np.repeat(np.arange(len(sequences)), sizes)
        symbol = _concatenate([np.array(ids, int) for ids in sequences])
        root = roots[row]
        # Add a last node for padding, a leaf of the first problem: the index -1 ("none" in `left`) refers to it.
        row = np.append(row, 0)
        root = np.append(root, 0)
        symbol = np.append(symbol, 0)
        parent = np.append(parent, -1)
        left = np.append(left, -1)
        right = np.append(right, -1)
        # Downward sweep: collect the nodes of each level and, in the same order, its operators.
        level = roots
        levels = [roots]
        parents = []
        parent_positions = []
        while (left[level] >= 0).any() or (pad and not _is_multiple(len(levels) - 1)):
            operator_positions = np.flatnonzero(left[level] >= 0)
            operators = level[operator_positions]
            if pad:
                operators = _pad(operators, -1)
                operator_positions = _pad(operator_positions, 0)
            parents.append(operators)
            parent_positions.append(operator_positions)
            level = np.concatenate([left[operators], right[operators]])
            levels.append(level)
        # Upward sweep: collect the embedded subtrees of each height, leaves first.
        heights = _up_order(parent, left)
        if pad:
            any_leaf = np.flatnonzero(symbol >= num_operators)[0]
            heights = _pad_heights(heights, any_leaf)
        position = np.full(len(row), -1)
        position[_concatenate(heights)] = np.arange(sum(map(len, heights)))
        position[-1] = 0
        leaves = _concatenate(heights[:1])
        down = _concatenate(levels)
        operators = _concatenate(parents)
        merged = _concatenate(heights[1:])
        positions = row[down] * longest + down - root[down]
        positions[down < 0] = len(sequences) * longest
        tensors = {
            # Problem and symbol id of each node, and `problem * longest + index in the prefix sequence`.
            "rows": row[down],
            "targets": symbol[down],
            "positions": positions,
            # Position of each operator in its level, symbol id, and left child's position in the upward buffer. If a
            # level has `p` operators, the children of operator `i` are at `i` and `p + i` in the next level.
            "parents": _concatenate(parent_positions),
            "parent_operators": symbol[operators],
            "siblings": position[left[operators]],
            # Leaves in the upward buffer, and inner subtrees with the positions of their children in the buffer: those
            # of the left and right child of the first subtree, then those of the second, and so on.
            "leaf_rows": row[leaves],
            "leaf_symbols": symbol[leaves],
            "merge_operators": symbol[merged],
            "merge_children": position[np.stack([left[merged], right[merged]], 1)].ravel(),
        }
        self.shape = (len(sequences), longest)
        self.is_padded = pad
        self.down_sizes = tuple(map(len, levels))
        self.up_sizes = tuple(map(len, heights))
        self._lengths = {name: len(tensor) for name, tensor in tensors.items()}
        self._set_buffer(torch.from_numpy(_concatenate(list(tensors.values())).astype(np.int64)))

    @property
    def num_positions(self) -> int:
        """Number of symbols in the padded prefix sequences of all problems."""
        return self.shape[0] * self.shape[1]

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


def _is_multiple(num_levels: int) -> bool:
    """Return whether this is one of the numbers of levels 4, 8, 12, ..."""
    return num_levels > 0 and num_levels % LEVELS_PER_GRAPH == 0


def _pad(nodes: np.ndarray, value: int) -> np.ndarray:
    """Append `value` up to the next of the sizes 16, 64, 256, ..."""
    size = MIN_SIZE
    while size < len(nodes):
        size *= 4
    return np.pad(nodes, (0, size - len(nodes)), constant_values=value)


def _pad_heights(heights: list[np.ndarray], leaf: int) -> list[np.ndarray]:
    """Pad the leaves with a leaf, the subtrees above with the node -1, and their heights to a multiple."""
    no_nodes = np.zeros(0, int)
    if not heights:
        heights = [no_nodes]
    padded = [_pad(heights[0], leaf)]
    for nodes in heights[1:]:
        padded.append(_pad(nodes, -1))
    while not _is_multiple(len(padded) - 1):
        padded.append(_pad(no_nodes, -1))
    return padded


def _up_order(parent: np.ndarray, left: np.ndarray) -> list[np.ndarray]:
    """Return the embedded nodes of each height."""
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
    return [nodes[node_heights == height] for height in range(node_heights.max(initial=-1) + 1)]


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
    if not arrays:
        return np.zeros(0, int)
    return np.concatenate(arrays)
