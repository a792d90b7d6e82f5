import numpy as np
import pytest

from hf_mwp.runtime import few_rows_linear
from hf_mwp.runtime.few_rows_linear import FewRowsLinear, block_width


@pytest.mark.parametrize("num_rows", [1, 4, 30])
@pytest.mark.parametrize("num_outputs", [1, 5, 64, 67, 130, 156])
def test_outputs_equal_those_of_one_product(num_rows, num_outputs):
    rng = np.random.default_rng(0)
    matrix = rng.integers(-4, 5, (7, num_outputs)).astype(np.float32)
    bias = rng.integers(-4, 5, num_outputs).astype(np.float32)
    x = rng.integers(-4, 5, (num_rows, 7)).astype(np.float32)
    expected = x @ matrix + bias
    for layout in (matrix, np.ascontiguousarray(matrix.T).T):
        output = FewRowsLinear(layout, bias)(x)
        assert output.dtype == np.float32
        np.testing.assert_array_equal(output, expected)


def test_many_rows_are_multiplied_in_portions(monkeypatch):
    monkeypatch.setattr(few_rows_linear, "SMALL_PRODUCT", 4 * 7 * 64)
    matrix = np.arange(7 * 70, dtype=np.float32).reshape(7, 70)
    x = np.arange(10 * 7, dtype=np.float32).reshape(10, 7)
    linear = FewRowsLinear(matrix, np.ones(70, np.float32))
    assert linear.max_rows == 4
    np.testing.assert_array_equal(linear(x), x @ matrix + 1)


def test_transposed_view_is_not_copied():
    stored = np.zeros((156, 7), np.float32)
    linear = FewRowsLinear(stored.T, np.zeros(156, np.float32))
    stored += 1
    assert linear(np.ones((2, 7), np.float32)).tolist() == [[7] * 156] * 2


def test_width_of_the_blocks_divides_that_of_a_view():
    widths = {number: block_width(number, 64) for number in (1, 5, 64, 67, 128, 156, 624, 134)}
    assert widths == {1: 1, 5: 5, 64: 64, 67: 67, 128: 64, 156: 52, 624: 52, 134: 134}
