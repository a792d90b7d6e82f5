import random

import pytest
import torch

from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler


LENGTHS = random.Random(0).choices(range(5, 81), k=500)


def test_every_example_once_and_batches_of_like_length():
    order = list(LengthGroupedSampler(LENGTHS, batch_size=16, seed=1))
    assert sorted(order) == list(range(500))
    padded = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in _batches(order))
    at_random = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in _batches(list(range(500))))
    assert padded / sum(LENGTHS) < 1.05 < 1.5 < at_random / sum(LENGTHS)
    assert LENGTHS[order[0]] == max(LENGTHS)
    # Not from the longest to the shortest, which would be a curriculum.
    middle = [LENGTHS[batch[0]] for batch in _batches(order)][1:-1]
    assert middle != sorted(middle) and middle != sorted(middle, reverse=True)


def test_groups_are_sorted_apart():
    lengths = list(range(1000))
    batches = _batches(list(LengthGroupedSampler(lengths, batch_size=16)))
    # 1000 examples are one group of 50 batches and one of 12.5: not a sorted whole.
    assert any(max(batch) - min(batch) > 15 for batch in batches)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17])
def test_few_examples(count):
    order = list(LengthGroupedSampler(list(range(1, count + 1)), batch_size=16))
    assert sorted(order) == list(range(count))
    assert not order or order[0] == count - 1


def test_order_depends_on_seed_and_epoch_alone():
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


def test_it_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    list(LengthGroupedSampler(LENGTHS, 16))
    assert torch.equal(torch.rand(3), expected)


def _batches(order):
    return [order[start : start + 16] for start in range(0, len(order), 16)]
