import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.solver.batches.tree_batch import TreeBatch


def prefix_trees(num_operators=3, num_leaves=4):
    leaves = st.integers(num_operators, num_operators + num_leaves - 1).map(lambda symbol: [symbol])
    operators = st.integers(0, num_operators - 1)
    return st.recursive(
        leaves, lambda trees: st.builds(lambda o, a, b: [o, *a, *b], operators, trees, trees), max_leaves=12
    )


def test_two_problems_worked_out_by_hand():
    # (a + b) - c with + = 0, - = 1, a = 2, b = 3, c = 4; and the single leaf 3.
    trees = TreeBatch([[1, 0, 2, 3, 4], [3]], num_operators=2)
    assert trees.shape == (2, 5)
    assert len(trees.rows) == 6
    assert trees.down_sizes == (2, 2, 2)
    assert trees.rows.tolist() == [0, 1, 0, 0, 0, 0]
    assert trees.targets.tolist() == [1, 3, 0, 4, 2, 3]
    assert trees.positions.tolist() == [0, 5, 1, 4, 2, 3]
    assert trees.parents.tolist() == [0, 0]
    assert trees.parent_operators.tolist() == [1, 0]
    # Left of something: a + b with its two leaves. Neither c nor the single leaf is embedded.
    assert trees.up_sizes == (2, 1)
    assert trees.leaf_rows.tolist() == [0, 0]
    assert trees.leaf_symbols.tolist() == [2, 3]
    assert trees.merge_operators.tolist() == [0]
    assert (trees.merge_left.tolist(), trees.merge_right.tolist()) == ([0], [1])
    assert trees.siblings.tolist() == [2, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(prefix_trees(), min_size=1, max_size=5))
def test_all_nodes_are_scored_once_and_parents_precede_children(sequences):
    trees = TreeBatch(sequences, num_operators=3)
    longest = max(map(len, sequences))
    assert sorted(trees.positions.tolist()) == sorted(
        row * longest + node for row, ids in enumerate(sequences) for node in range(len(ids))
    )
    for row, position, target in zip(
        trees.rows.tolist(), trees.positions.tolist(), trees.targets.tolist(), strict=True
    ):
        assert sequences[row][position - row * longest] == target
    assert len(trees.parents) == sum(symbol < 3 for ids in sequences for symbol in ids)
    assert len(trees.siblings) == 0 or int(trees.siblings.max()) < sum(trees.up_sizes)
    offset = 0
    for height, size in enumerate(trees.up_sizes[1:], start=1):
        below = sum(trees.up_sizes[:height])
        assert (trees.merge_left[offset : offset + size] < below).all()
        assert (trees.merge_right[offset : offset + size] < below).all()
        offset += size


def test_labels_with_more_padding_keep_their_places():
    labels = torch.tensor([[0, 2, 3, -100, -100], [2, -100, -100, -100, -100]])
    trees = TreeBatch.from_labels(labels, num_operators=2)
    assert trees.shape == (2, 5)
    assert torch.equal(labels.flatten()[trees.positions], trees.targets)


def test_a_move_keeps_everything():
    trees = TreeBatch([[0, 2, 3]], num_operators=2)
    assert trees.to("cpu") is trees
    moved = trees.to("meta")
    assert moved.device.type == "meta"
    assert (moved.shape, moved.down_sizes, len(moved.rows)) == (trees.shape, trees.down_sizes, 3)


@pytest.mark.parametrize("ids", [[], [0], [0, 2], [2, 2], [0, 2, 3, 3]])
def test_what_is_no_tree_is_refused(ids):
    with pytest.raises(ValueError, match=re.escape(str(ids))):
        TreeBatch([[2], ids], num_operators=2)
