import random

import pytest
import torch

from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler


LENGTHS = random.Random(0).choices(range(5, 81), k=500)


def batches_of(order):
    return [order[start : start + 16] for start in range(0, len(order), 16)]


def padded_share(order):
    """Tokens of padded batches, for each token of a row."""
    num_tokens = 0
    for batch in batches_of(order):
        num_tokens += len(batch) * max(LENGTHS[index] for index in batch)
    return num_tokens / sum(LENGTHS)


def test_batches_have_rows_of_similar_length():
    order = list(LengthGroupedSampler(LENGTHS, batch_size=16, seed=1))
    assert sorted(order) == list(range(500))
    assert padded_share(order) < 1.05
    assert padded_share(list(range(500))) > 1.5
    assert LENGTHS[order[0]] == max(LENGTHS)
    # Not from the longest to the shortest, which would be a curriculum.
    first_lengths = [LENGTHS[batch[0]] for batch in batches_of(order)[1:-1]]
    assert first_lengths != sorted(first_lengths)
    assert first_lengths != sorted(first_lengths, reverse=True)


def test_groups_are_sorted_apart():
    order = list(LengthGroupedSampler(list(range(1000)), batch_size=16))
    # 1000 examples are one group of 50 batches and one of 12.5: not a sorted whole.
    assert any(max(batch) - min(batch) > 15 for batch in batches_of(order))


@pytest.mark.parametrize("num_rows", [0, 1, 15, 16, 17])
def test_few_rows(num_rows):
    order = list(LengthGroupedSampler(list(range(num_rows)), batch_size=16))
    assert sorted(order) == list(range(num_rows))
    assert not order or order[0] == num_rows - 1


def test_the_order_depends_on_seed_and_epoch_alone():
    sampler = LengthGroupedSampler(LENGTHS, 16, seed=1)
    first = list(sampler)
    torch.rand(7)
    assert list(sampler) == first
    sampler.set_epoch(1)
    second = list(sampler)
    assert second != first
    resumed = LengthGroupedSampler(LENGTHS, 16, seed=1, first_epoch=lambda: 1)
    assert list(resumed) == second
    resumed.set_epoch(0)
    assert list(resumed) == first
    assert list(LengthGroupedSampler(LENGTHS, 16, seed=2)) != first


def test_the_global_generator_is_not_used():
    state = torch.get_rng_state()
    list(LengthGroupedSampler(LENGTHS, 16))
    assert torch.equal(torch.get_rng_state(), state)
