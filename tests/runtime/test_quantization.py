import numpy as np
from safetensors.numpy import save_file

from hf_mwp.runtime.weights import Weights, quantize_int8


def test_rows_keep_their_largest_element(tmp_path):
    rng = np.random.default_rng(0)
    matrix = (rng.normal(size=(64, 80)) * rng.uniform(0.01, 10, size=(64, 1))).astype(np.float32)
    stored = quantize_int8({"matrix": matrix, "bias": np.array([0.5, 1], np.float32)})
    assert stored["matrix"].dtype == np.int8
    assert stored["matrix.scale"].shape == (64,)
    assert np.abs(stored["matrix"]).max(1).tolist() == [127] * 64
    assert stored["bias"].dtype == np.float16
    save_file(stored, tmp_path / "model.safetensors")
    # Half a step of 1/127 of the largest element of the row, and the rounding of the scale.
    error = np.abs(Weights(tmp_path)["matrix"] - matrix) / np.abs(matrix).max(1, keepdims=True)
    assert error.max() < 0.5 / 127 + 0.001


def test_small_and_empty_rows():
    stored = quantize_int8({"small": np.ones((4, 4), np.float32), "zero": np.zeros((64, 64), np.float32)})
    assert stored["small"].dtype == np.float16
    assert not stored["zero"].any()
    assert np.isfinite(stored["zero.scale"]).all()
