import pickle

import numpy as np
import pyarrow
import pytest

from hf_mwp.utils import row_store
from hf_mwp.utils.row_store import RowStore, StoreError


SCHEMA = pyarrow.schema({"key": pyarrow.binary(16), "text": pyarrow.string(), "content": pyarrow.binary()})


def key(number):
    """A key that ends in zeros."""
    return bytes([number]) + bytes(15)


def content(number):
    return bytes([number]) * (number % 3)


def columns(numbers):
    return {
        "key": [key(number) for number in numbers],
        "text": [str(number) for number in numbers],
        "content": [content(number) for number in numbers],
    }


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """A file for each piece that is appended."""
    monkeypatch.setattr(row_store, "FILE_BYTES", 1)


@pytest.fixture
def store(tmp_path):
    return RowStore(tmp_path / "new" / "folder", "f")


def reopened(store):
    return RowStore(store.folder, "f")


def fill(store, numbers, size=2, **about):
    """Append a file for each `size` rows."""
    with store.locked(), store.writing(SCHEMA, about):
        for start in range(0, len(numbers), size):
            store.append(columns(numbers[start : start + size]))


def assert_rows(store, numbers, indices=None):
    rows = store.rows(range(len(store)) if indices is None else indices, ["content", "text"])
    assert [row["text"] for row in rows] == [str(number) for number in numbers]
    assert [bytes(row["content"]) for row in rows] == [content(number) for number in numbers]


def num_files(store):
    return len(list(store.folder.glob("rows-*")))


def test_rows_are_read_by_number_and_key(store):
    assert len(store) == 0 and store.nbytes == 0 and store.missing([key(1)]).tolist() == [0]
    # Keys stand in another order than the rows.
    fill(store, [3, 1, 0, 9, 5], made="here")
    unpickled = pickle.loads(pickle.dumps(store))  # noqa: S301 (our own bytes)
    for opened in (store, reopened(store), unpickled):
        assert len(opened) == 5 and opened.about == {"made": "here"} and len(opened.paths) == 3
        assert_rows(opened, [3, 1, 0, 9, 5])
        assert opened.find([key(9), key(0), key(7), key(200)]).tolist() == [3, 2, -1, -1]
        assert_rows(opened, [9, 3, 9], [3, 0, 3])
        assert opened.missing([key(7), key(9), key(7), key(8)]).tolist() == [0, 3]
    assert store.nbytes == sum(path.stat().st_size for path in store.paths)
    fill(store, [2, 4])
    assert_rows(reopened(store), [3, 1, 0, 9, 5, 2, 4])


def test_rows_without_keys_have_numbers(store, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 1000)
    with store.locked(), store.writing(pyarrow.schema({"ids": pyarrow.list_(pyarrow.int32())})):
        store.append({"ids": [np.arange(2), np.arange(0)]})
        store.append({"ids": [[7]]})
    assert [row["ids"] for row in store.rows([2, 1, 0], ["ids"])] == [[7], [], [0, 1]]
    assert len(store.paths) == 1 and store.find([key(1)]).tolist() == [-1]


def test_files_have_a_size_and_rows_are_cleared(store, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 100)
    fill(store, range(40), size=1)
    assert len(store.paths) in range(5, 39)
    assert_rows(store, range(40))
    assert_rows(reopened(store), [39, 0, 20], [39, 0, 20])
    store.clear()
    assert len(store) == 0 and store.missing([key(3)]).tolist() == [0]
    fill(store, [3, 1])
    assert_rows(reopened(store), [3, 1])
    assert num_files(store) == 1


def test_complete_rows_stay_after_an_error(store):
    with pytest.raises(RuntimeError, match="coffee"), store.locked(), store.writing(SCHEMA):
        store.append(columns([1, 2]))
        raise RuntimeError("out of coffee")
    assert_rows(store, [1, 2])
    assert_rows(reopened(store), [1, 2])
    # Rows that do not fit the schema raise at once and leave nothing.
    with pytest.raises(pyarrow.ArrowInvalid), store.locked(), store.writing(SCHEMA):
        store.append(columns([4]) | {"key": [b"short"]})
    assert num_files(store) == 1
    fill(store, [3])
    assert_rows(store, [1, 2, 3])


def test_damaged_file_is_left_out_when_opening(store, caplog):
    fill(store, range(6))
    path = store.paths[1]
    path.write_bytes(path.read_bytes()[:-8])
    opened = reopened(store)
    assert_rows(opened, [0, 1, 4, 5])
    assert str(path) in caplog.text and "2 rows" in caplog.text
    fill(opened, [3, 2])
    assert_rows(opened, [0, 1, 4, 5, 3, 2])
    assert not path.exists()


def test_rows_of_another_process_are_read_with_the_lock(store):
    other_store = reopened(store)
    fill(store, [1, 2])
    assert len(other_store) == 0
    with other_store.locked():
        assert_rows(other_store, [1, 2])
    fill(other_store, [3])
    assert_rows(reopened(store), [1, 2, 3])


def test_folder_of_another_fingerprint_raises(store):
    fill(store, [1])
    with pytest.raises(StoreError, match=r"manifest.json .*\bf\b.*\bg\b"):
        RowStore(store.folder, "g")
