import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.tree_search import TreeDecoder
from hf_mwp.solver.models import GTSConfig, GTSDecoder
from hf_mwp.solver.models.gts.tree_search import LiveWeights
from tests.slow_parameters import slow_after, slow_except


def decoders(seed=0, **fields):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 12, "encoder_hidden_size": 12, "operator_embedding_size": 6, "max_length": 9}
    config = GTSConfig(**(sizes | {"constants": ["1", "3.14"], "initializer_range": 0.5} | fields))
    decoder = GTSDecoder(config).eval()
    return decoder, TreeDecoder(LiveWeights(decoder), config.to_dict())


def encoder_states(width=12, seed=0):
    return np.random.default_rng(seed).normal(size=(8, width)).astype(np.float32)


def searched_in_pytorch(decoder, states, positions, **options):
    """Prefix ids and scores of the trees that PyTorch finds."""
    # Two problems, because a single one would be searched by the runtime itself.
    twice = torch.from_numpy(np.stack([states, states]))
    output = decoder.generate(twice, number_positions=torch.tensor([positions, positions]), **options)
    trees = []
    scores = []
    for ids, score, finished in zip(output.sequences[0], output.scores[0], output.finished[0], strict=True):
        if finished:
            trees.append(tuple(ids[ids >= 0].tolist()))
            scores.append(score.item())
    return trees, scores


@pytest.mark.parametrize("beams", slow_except([1, 5, 20], 5))
@pytest.mark.parametrize("fields", [{}, {"root_goal": "mean"}, {"encoder_hidden_size": 7}, {"constants": []}])
def test_trees_equal_those_of_pytorch(beams, fields):
    for seed in range(3):
        decoder, runtime = decoders(seed, **fields)
        states = encoder_states(decoder.config.encoder_hidden_size, seed)
        trees, scores = searched_in_pytorch(decoder, states, [1, 4, 6], num_beams=beams, num_return_sequences=beams)
        results = runtime.search(states, [1, 4, 6], beams, beams)
        assert [ids for ids, _ in results] == trees
        np.testing.assert_allclose([score for _, score in results], scores, atol=1e-4)


@pytest.mark.parametrize("score_margin", [0.1, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("beams", slow_after(1, [5, 20]))
def test_trees_within_a_margin_equal_those_of_pytorch(beams, score_margin):
    for seed in range(3):
        decoder, runtime = decoders(seed)
        states = encoder_states(seed=seed)
        options = {"num_beams": beams, "num_return_sequences": beams, "score_margin": score_margin}
        trees, scores = searched_in_pytorch(decoder, states, [1, 4, 6], **options)
        results = runtime.search(states, [1, 4, 6], beams, beams, score_margin=score_margin)
        assert [ids for ids, _ in results] == trees
        np.testing.assert_allclose([score for _, score in results], scores, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), beams=st.integers(1, 12), count=st.integers(1, 12))
def test_best_trees_do_not_depend_on_their_number(seed, beams, count):
    _, runtime = decoders(seed)
    states = encoder_states(seed=seed)
    count = min(count, beams)
    all_results = runtime.search(states, [1, 4], beams, beams)
    results = runtime.search(states, [1, 4], beams, count)
    assert [ids for ids, _ in results] == [ids for ids, _ in all_results[:count]]
    scores = [score for _, score in all_results[:count]]
    # Fewer rows in a product round differently.
    np.testing.assert_allclose([score for _, score in results], scores, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), beams=st.integers(2, 12), score_margin=st.floats(0.01, 8))
def test_margin_keeps_the_best_tree_within_it(seed, beams, score_margin):
    _, runtime = decoders(seed)
    states = encoder_states(seed=seed)
    _, score = runtime.search(states, [1, 4], beams, beams)[0]
    _, score_within = runtime.search(states, [1, 4], beams, beams, score_margin=score_margin)[0]
    # The log probabilities of the tree's beginnings are between its own and 0.
    if score >= -score_margin:
        assert score_within >= score


def test_number_that_was_cut_off_is_not_used():
    decoder, runtime = decoders()
    for ids, _ in runtime.search(encoder_states(), [1, -1, 3], 10, 10):
        assert decoder.num_symbols + 1 not in ids


@pytest.mark.parametrize("length", [1, 3, 5])
def test_length_of_trees_is_limited(length):
    decoder, runtime = decoders()
    states = encoder_states(seed=1)
    results = runtime.search(states, [1, 2], 8, 8, max_length=length)
    trees = [ids for ids, _ in results]
    assert 0 < max(map(len, trees)) <= length
    scores = [score for _, score in results]
    assert scores == sorted(scores, reverse=True)
    options = {"num_beams": 8, "num_return_sequences": 8, "max_length": length}
    assert trees == searched_in_pytorch(decoder, states, [1, 2], **options)[0]


def test_without_numbers_and_constants_there_is_no_tree():
    _, runtime = decoders(constants=[])
    assert runtime.search(encoder_states(), [], 3, 3) == []
