import re

import pytest
import torch

from hf_mwp.solver.batches.tree_batch import TreeBatch


def test_two_problems_worked_out_by_hand():
    # (a + b) - c with + = 0, - = 1, a = 2, b = 3, c = 4; and the single leaf 3.
    trees = TreeBatch([[1, 0, 2, 3, 4], [3]], num_operators=2)
    assert trees.shape == (2, 5)
    assert trees.down_sizes == (2, 2, 2)
    assert trees.rows.tolist() == [0, 1, 0, 0, 0, 0]
    assert trees.targets.tolist() == [1, 3, 0, 4, 2, 3]
    assert trees.positions.tolist() == [0, 5, 1, 4, 2, 3]
    assert trees.parents.tolist() == [0, 0]
    assert trees.parent_operators.tolist() == [1, 0]
    # Left operands: a + b with its two leaves. Neither c nor the single leaf is embedded.
    assert trees.up_sizes == (2, 1)
    assert trees.leaf_rows.tolist() == [0, 0]
    assert trees.leaf_symbols.tolist() == [2, 3]
    assert trees.merge_operators.tolist() == [0]
    assert trees.merge_children.tolist() == [0, 1]
    assert trees.siblings.tolist() == [2, 0]


def test_padding_of_labels_does_not_change_the_positions():
    labels = torch.tensor([[0, 2, 3, -100, -100], [2, -100, -100, -100, -100]])
    trees = TreeBatch.from_labels(labels, num_operators=2)
    assert trees.shape == (2, 5)
    assert torch.equal(labels.flatten()[trees.positions], trees.targets)


def test_padded_levels_have_few_sizes_and_the_same_nodes():
    sequences = [[1, 0, 2, 3, 4], [3], [0, 2, 0, 2, 0, 3, 4]]
    trees = TreeBatch(sequences, num_operators=2)
    padded = TreeBatch(sequences, num_operators=2, pad=True)
    # Pairs of children: 16 for each level of operators.
    assert padded.down_sizes == (3, 32, 32, 32, 32)
    assert padded.up_sizes == (16, 16, 16, 16, 16)
    assert padded.num_positions == 21
    is_node = padded.positions < 21
    for name in ("rows", "targets", "positions"):
        assert sorted(getattr(padded, name)[is_node].tolist()) == sorted(getattr(trees, name).tolist())
    assert (padded.positions[~is_node] == 21).all()
    # All indices are within their level or buffer.
    assert padded.parents.max() < 32
    for name in ("siblings", "merge_children"):
        assert 0 <= getattr(padded, name).min() <= getattr(padded, name).max() < sum(padded.up_sizes)


def test_sizes_of_padded_levels_grow_by_factors_of_four():
    padded = TreeBatch([[0, 2, 3]] * 17, num_operators=2, pad=True)
    assert padded.down_sizes == (17, 128, 32, 32, 32)
    assert padded.up_sizes == (64, 16, 16, 16, 16)


def test_trees_are_moved_to_a_device():
    trees = TreeBatch([[0, 2, 3]], num_operators=2)
    assert trees.to("cpu") is trees
    moved = trees.to("meta")
    assert moved.device.type == "meta"
    assert (moved.shape, moved.down_sizes, len(moved.rows)) == (trees.shape, trees.down_sizes, 3)


@pytest.mark.parametrize("ids", [[], [0], [0, 2], [2, 2], [0, 2, 3, 3]])
def test_sequences_that_are_not_trees_are_refused(ids):
    with pytest.raises(ValueError, match=re.escape(str(ids))):
        TreeBatch([[2], ids], num_operators=2)
