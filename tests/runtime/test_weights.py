from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from hf_mwp.runtime.weights import Weights
from hf_mwp.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_solver


def test_values_are_read_in_float32(tmp_path):
    values = torch.tensor([[1.5, -2.0], [0.25, 4.0]])
    stored = {"single": values, "half": values.half(), "brain": values.bfloat16()}
    save_torch(stored, tmp_path / "model.safetensors")
    weights = Weights(tmp_path)
    for name in stored:
        assert weights[name].dtype == np.float32 and weights[name].tolist() == values.tolist()
        assert weights.rows(name, np.array([1])).tolist() == [[0.25, 4.0]]
    assert "half" in weights and "other" not in weights


def test_int8_rows_have_a_scale_each(tmp_path):
    stored = {"a": np.array([[127, -127], [10, 0]], np.int8), "a.scale": np.array([0.5, 2], np.float16)}
    save_file(stored, tmp_path / "model.safetensors")
    assert Weights(tmp_path)["a"].tolist() == [[63.5, -63.5], [20, 0]]
    assert Weights(tmp_path).rows("a", np.array([1, 1])).tolist() == [[20, 0], [20, 0]]


def test_a_linear_layer_is_turned_round(tmp_path):
    stored = {"x.weight": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "x.bias": np.array([7, 8], np.float32)}
    save_file(stored, tmp_path / "model.safetensors")
    matrix, bias = Weights(tmp_path).linear("x")
    assert (np.array([1, 0, 1]) @ matrix + bias).tolist() == [11, 18]
    assert Weights(tmp_path).linear("x", bias=False)[1] == 0


def test_several_files(tmp_path):
    model = tiny_solver(tiny_processor())
    model.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    weights = Weights(tmp_path)
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(weights[name], tensor)


def test_what_is_missing_or_damaged_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"model\.safetensors"):
        Weights(tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones((4, 4), np.float32)}, path)
    with pytest.raises(UsageError, match="other"):
        Weights(tmp_path)["other"]
    whole = path.read_bytes()
    for content in (b"", b"12", whole[:30], whole[:-8], b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="damaged"):
            Weights(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_the_file_is_not_kept_in_memory_beside_the_values(tmp_path):
    save_file({"a": np.ones((1024, 4096), np.float32)}, tmp_path / "model.safetensors")
    before, weights = resident_file_bytes(), Weights(tmp_path)
    values = weights["a"]
    assert values.nbytes == 2**24 and resident_file_bytes() - before < 2**22


def resident_file_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssFile:")[2].split()[0])
