"""Tests of the precision of computations."""

import pytest
import torch

from hf_mwp.compress.losses.precision import at_least_fp32, without_autocast


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_half_precision_becomes_single(dtype, expected):
    tensor = torch.tensor([1.5, -2.0], dtype=dtype)
    converted = at_least_fp32(tensor)
    assert converted.dtype == expected and converted.tolist() == [1.5, -2.0]
    assert (converted is tensor) == (dtype == expected)


def test_products_without_autocast():
    tensor = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert (tensor @ tensor).dtype == torch.bfloat16
        with without_autocast(tensor):
            assert (tensor @ tensor).dtype == torch.float32
