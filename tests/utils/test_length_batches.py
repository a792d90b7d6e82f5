import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.utils.length_batches import batches_by_length


@pytest.mark.parametrize(
    ("lengths", "batch_size", "batches"),
    [
        ([3, 9, 3, 5], 2, [[1, 3], [0, 2]]),
        ([3, 9, 3, 5], 3, [[1, 3, 0], [2]]),
        ([3, 9, 3], 8, [[1, 0, 2]]),
        ([3, 9, 3], None, [[0, 1, 2]]),
        ([], 2, []),
        ([], None, []),
    ],
)
def test_longest_texts_come_first(lengths, batch_size, batches):
    assert batches_by_length(lengths, batch_size) == batches


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_each_text_is_in_one_batch_and_no_later_batch_is_longer(lengths, batch_size):
    batches = batches_by_length(lengths, batch_size)
    assert sorted(sum(batches, [])) == list(range(len(lengths)))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    order = [lengths[index] for index in sum(batches, [])]
    assert order == sorted(lengths, reverse=True)
