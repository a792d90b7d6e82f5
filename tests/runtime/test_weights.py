import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from hf_mwp.runtime.weights import FILE_NAME, Weights
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_solver


def save(folder, **tensors):
    """Save tensors, whose names have a dot for two underscores, and return the weights of the folder."""
    save_file({name.replace("__", "."): value for name, value in tensors.items()}, folder / FILE_NAME)
    return Weights(folder)


def write_header(folder, header):
    """Write a file of 16 bytes of tensors with a header, which is JSON or a text."""
    text = header if isinstance(header, str) else json.dumps(header)
    content = text.encode()
    (folder / FILE_NAME).write_bytes(len(content).to_bytes(8, "little") + content + bytes(16))


def test_values_are_read_in_float32(tmp_path):
    values = torch.tensor([[1.5, -2.0], [0.25, 4.0]])
    stored = {"single": values, "half": values.half(), "brain": values.bfloat16(), "double": values.double()}
    save_torch(stored, tmp_path / FILE_NAME)
    weights = Weights(tmp_path)
    for name in stored:
        assert weights[name].dtype == np.float32
        assert weights[name].tolist() == values.tolist()
        assert weights.table(name).rows(np.array([1])).tolist() == [[0.25, 4.0]]
    assert "half" in weights
    assert "other" not in weights


def test_int8_rows_are_multiplied_by_their_scales(tmp_path):
    rows = np.array([[127, -127], [10, 0]], np.int8)
    weights = save(tmp_path, a=rows, a__scale=np.array([0.5, 2], np.float16))
    assert weights["a"].tolist() == [[63.5, -63.5], [20, 0]]
    assert weights.table("a").rows(np.array([1, 1])).tolist() == [[20, 0], [20, 0]]


def test_matrix_of_a_linear_layer_is_transposed(tmp_path):
    matrix = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    weights = save(tmp_path, x__weight=matrix, x__bias=np.array([7, 8], np.float32))
    matrix, bias = weights.linear("x")
    assert (np.array([1, 0, 1]) @ matrix + bias).tolist() == [11, 18]
    assert weights.linear("x", bias=False)[1] == 0


def test_several_files_are_read(tmp_path):
    model = tiny_solver(tiny_processor())
    model.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    weights = Weights(tmp_path)
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(weights[name], tensor)


def test_missing_file_and_weight_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"model\.safetensors"):
        Weights(tmp_path)
    with pytest.raises(UsageError, match="other"):
        save(tmp_path, a=np.ones((4, 4), np.float32))["other"]


@pytest.mark.parametrize("content", [b"", b"12", b"\xff" * 64])
def test_file_without_a_header_is_damaged(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(UsageError, match="damaged"):
        Weights(tmp_path)


@pytest.mark.parametrize("size", [30, -8])
def test_file_that_is_cut_short_is_damaged(tmp_path, size):
    save(tmp_path, a=np.ones((4, 4), np.float32))
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UsageError, match="damaged"):
        Weights(tmp_path)


ENTRY = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data_offsets": [-16, 0]}, "offsets"),
        ({"data_offsets": [0, 2**40]}, "bytes, which do not fit"),
        ({"shape": [4, 2]}, "16 bytes, which do not fit"),
        ({"shape": [-2, -2]}, "shape"),
        ({"shape": "22"}, "shape"),
        ({"shape": [True, 4]}, "shape"),
        ({"dtype": "F8_E4M3"}, "type 'F8_E4M3'"),
        ({"dtype": []}, r"type \[\]"),
        ({"shape": [3], "data_offsets": [4, 16]}, "does not begin where"),
        ({"shape": [3], "data_offsets": [0, 12]}, "end at byte"),
    ],
)
def test_header_that_does_not_describe_the_file_is_refused(tmp_path, fields, message):
    write_header(tmp_path, {"a": ENTRY | fields})
    with pytest.raises(UsageError, match=rf"model\.safetensors is damaged or cut short \(.*{message}"):
        Weights(tmp_path)


@pytest.mark.parametrize("header", [[], 3, {"a": 3}, {"a": {}}, "[" * 100_000], ids=lambda header: str(header)[:9])
def test_header_that_is_no_description_is_refused(tmp_path, header):
    write_header(tmp_path, header)
    with pytest.raises(UsageError, match=r"model\.safetensors is damaged"):
        Weights(tmp_path)


def test_empty_tensor_may_have_the_offset_of_another_one(tmp_path):
    write_header(tmp_path, {"a": ENTRY, "b": ENTRY | {"shape": [0, 2], "data_offsets": [0, 0]}})
    weights = Weights(tmp_path)
    assert weights["a"].shape == (2, 2)
    assert weights["b"].shape == (0, 2)


def test_file_that_is_cut_short_after_its_header_was_read(tmp_path):
    weights = save(tmp_path, a=np.ones((64, 64), np.float32))
    table = weights.table("a")
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:100])
    assert table.rows(np.array([63])).tolist() == [[1.0] * 64]
    with pytest.raises(UsageError, match="cut short"):
        weights["a"]


def resident_file_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssFile:")[2].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_file_is_not_kept_in_memory_beside_the_values(tmp_path):
    weights = save(tmp_path, a=np.ones((1024, 4096), np.float32))
    before = resident_file_bytes()
    values = weights["a"]
    assert values.nbytes == 2**24
    assert resident_file_bytes() - before < 2**22
