import numpy as np
import pytest
import torch

from hf_mwp.runtime.tree_search import TreeDecoder
from hf_mwp.solver.models import GTSConfig, GTSDecoder
from hf_mwp.solver.models.gts.tree_search import LiveWeights


def decoders(seed=0, **fields):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 12, "encoder_hidden_size": 12, "operator_embedding_size": 6, "max_length": 9}
    config = GTSConfig(**(sizes | {"constants": ["1", "3.14"], "initializer_range": 0.5} | fields))
    decoder = GTSDecoder(config).eval()
    return decoder, TreeDecoder(LiveWeights(decoder), config.to_dict())


def searched(decoder, states, positions, **options):
    """Prefix ids and scores of the trees that PyTorch finds."""
    # Two problems: one alone would be searched by the runtime itself.
    twice = torch.from_numpy(np.stack([states, states]))
    found = decoder.generate(twice, number_positions=torch.tensor([positions, positions]), **options)
    rows = zip(found.sequences[0].tolist(), found.scores[0].tolist(), found.finished[0].tolist(), strict=True)
    return [(tuple(symbol for symbol in ids if symbol >= 0), score) for ids, score, finished in rows if finished]


@pytest.mark.parametrize("beams, wanted", [(1, 1), (3, 1), (5, 5), (20, 20)])
@pytest.mark.parametrize("fields", [{}, {"root_goal": "mean"}, {"encoder_hidden_size": 7}, {"constants": []}])
def test_the_trees_are_those_of_pytorch(beams, wanted, fields):
    for seed in range(6):
        decoder, runtime = decoders(seed, **fields)
        width = decoder.config.encoder_hidden_size
        states = np.random.default_rng(seed).normal(size=(8, width)).astype(np.float32)
        expected = searched(decoder, states, [1, 4, 6], num_beams=beams, num_return_sequences=wanted)
        found = runtime.search(states, [1, 4, 6], beams, wanted)
        assert [ids for ids, _ in found] == [ids for ids, _ in expected]
        np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-4)


def test_a_number_that_was_cut_off_is_not_used():
    decoder, runtime = decoders()
    states = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)
    for ids, _ in runtime.search(states, [1, -1, 3], 10, 10):
        assert decoder.num_symbols + 1 not in ids


@pytest.mark.parametrize("length", [1, 3, 5])
def test_trees_have_at_most_so_many_symbols(length):
    decoder, runtime = decoders()
    states = np.random.default_rng(1).normal(size=(5, 12)).astype(np.float32)
    found = runtime.search(states, [1, 2], 8, 8, max_length=length)
    assert found and max(len(ids) for ids, _ in found) <= length
    assert found == sorted(found, key=lambda each: -each[1])
    expected = searched(decoder, states, [1, 2], num_beams=8, num_return_sequences=8, max_length=length)
    assert [ids for ids, _ in found] == [ids for ids, _ in expected]


def test_without_numbers_and_constants_there_is_no_tree():
    _, runtime = decoders(constants=[])
    assert runtime.search(np.ones((4, 12), np.float32), [], 3, 3) == []
