import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from hf_mwp.runtime.weights import Weights
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_solver


def test_values_are_read_in_float32(tmp_path):
    values = torch.tensor([[1.5, -2.0], [0.25, 4.0]])
    stored = {"single": values, "half": values.half(), "brain": values.bfloat16(), "double": values.double()}
    save_torch(stored, tmp_path / "model.safetensors")
    weights = Weights(tmp_path)
    for name in stored:
        assert weights[name].dtype == np.float32 and weights[name].tolist() == values.tolist()
        assert weights.table(name).rows(np.array([1])).tolist() == [[0.25, 4.0]]
    assert "half" in weights and "other" not in weights


def test_int8_rows_have_a_scale_each(tmp_path):
    stored = {"a": np.array([[127, -127], [10, 0]], np.int8), "a.scale": np.array([0.5, 2], np.float16)}
    save_file(stored, tmp_path / "model.safetensors")
    assert Weights(tmp_path)["a"].tolist() == [[63.5, -63.5], [20, 0]]
    assert Weights(tmp_path).table("a").rows(np.array([1, 1])).tolist() == [[20, 0], [20, 0]]


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


HEADERS = {
    "negative offset": ({"data_offsets": [-16, 0]}, "shape.*offsets"),
    "offsets beyond the end": ({"data_offsets": [0, 2**40]}, "bytes, which do not fit the shape"),
    "wrong shape": ({"shape": [4, 2]}, "16 bytes, which do not fit the shape"),
    "negative shape": ({"shape": [-2, -2]}, "shape"),
    "no numbers": ({"shape": "22"}, "shape"),
    "true as a size": ({"shape": [True, 4]}, "shape"),
    "unknown type": ({"dtype": "F8_E4M3"}, "type 'F8_E4M3'"),
    "a type that is no text": ({"dtype": []}, r"type \[\]"),
    "gap": ({"shape": [3], "data_offsets": [4, 16]}, "does not begin where"),
    "rest": ({"shape": [3], "data_offsets": [0, 12]}, "end at byte"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_does_not_describe_the_file_is_refused(tmp_path, name):
    change, message = HEADERS[name]
    write_file(tmp_path, {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]} | change})
    with pytest.raises(UsageError, match=rf"model\.safetensors is damaged or cut short \(.*`?a?`?.*{message}"):
        Weights(tmp_path)


@pytest.mark.parametrize("header", [[], 3, {"a": 3}, {"a": {}}, "[" * 100_000])
def test_a_header_that_is_no_description_is_refused(tmp_path, header):
    write_file(tmp_path, header)
    with pytest.raises(UsageError, match=r"model\.safetensors is damaged"):
        Weights(tmp_path)


def test_empty_tensors_may_be_at_the_place_of_others(tmp_path):
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    empty = {"dtype": "F32", "shape": [0, 2], "data_offsets": [0, 0]}
    write_file(tmp_path, {"a": entry, "b": empty})
    weights = Weights(tmp_path)
    assert weights["a"].shape == (2, 2) and weights["b"].shape == (0, 2)


def write_file(folder, header):
    text = header if isinstance(header, str) else json.dumps(header)
    content = text.encode()
    (folder / "model.safetensors").write_bytes(len(content).to_bytes(8, "little") + content + bytes(16))


def test_a_file_that_is_cut_short_after_its_header_was_read(tmp_path):
    save_file({"a": np.ones((64, 64), np.float32)}, tmp_path / "model.safetensors")
    weights = Weights(tmp_path)
    table = weights.table("a")
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert table.rows(np.array([63])).tolist() == [[1.0] * 64]
    with pytest.raises(UsageError, match="cut short"):
        weights["a"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_the_file_is_not_kept_in_memory_beside_the_values(tmp_path):
    save_file({"a": np.ones((1024, 4096), np.float32)}, tmp_path / "model.safetensors")
    before, weights = resident_file_bytes(), Weights(tmp_path)
    values = weights["a"]
    assert values.nbytes == 2**24 and resident_file_bytes() - before < 2**22


def resident_file_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssFile:")[2].split()[0])
