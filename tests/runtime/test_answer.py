import math

from hf_mwp.runtime.answer import read_trees
from tests.tiny import tiny_processor


def test_finished_trees_are_read():
    processor = tiny_processor()
    one = processor.vocabulary.token_to_id("N0")
    trees = [([0, one, one + 1, -100], -0.5), ([one, -100, -100, -100], -1.0), ([-100] * 4, -math.inf)]
    assert [(tree.to_infix(), score) for tree, score in read_trees(trees, processor.decode)] == [
        ("N0+N1", -0.5),
        ("N0", -1.0),
    ]
