import pickle

import numpy as np
import pyarrow
import pytest

from hf_mwp.utils import row_store
from hf_mwp.utils.row_store import RowStore, StoreError


SCHEMA = pyarrow.schema({"key": pyarrow.binary(16), "text": pyarrow.string(), "content": pyarrow.binary()})


def key(number):
    return bytes([number]) + bytes(15)


def columns(numbers):
    return {
        "key": [key(number) for number in numbers],
        "text": [f"{number}" for number in numbers],
        "content": [bytes([number]) * (number % 3) for number in numbers],
    }


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """A file for each piece that is appended."""
    monkeypatch.setattr(row_store, "FILE_BYTES", 1)


def fill(store, numbers, size=2, **about):
    """A file for each `size` rows."""
    with store.locked(), store.writing(SCHEMA, about):
        for start in range(0, len(numbers), size):
            store.append(columns(numbers[start : start + size]))


def check(store, numbers, places=None):
    found = store.rows(range(len(store)) if places is None else places, ["content", "text"])
    assert [row["text"] for row in found] == [f"{number}" for number in numbers]
    assert [list(bytes(row["content"])) for row in found] == [[number] * (number % 3) for number in numbers]


def test_rows_have_numbers_and_keys(tmp_path):
    store = RowStore(tmp_path / "new" / "folder", "f")
    assert len(store) == 0 and store.nbytes == 0 and store.missing([key(1)]).tolist() == [0]
    fill(store, [3, 1, 0, 9, 5], made="here")
    # Keys that end in zeros, and that stand in another order than the rows.
    for each in (store, RowStore(store.folder, "f"), pickle.loads(pickle.dumps(store))):  # noqa: S301 (our own bytes)
        assert len(each) == 5 and each.about == {"made": "here"} and len(each.paths) == 3
        check(each, [3, 1, 0, 9, 5])
        assert each.find([key(9), key(0), key(7), key(200)]).tolist() == [3, 2, -1, -1]
        check(each, [9, 3, 9], [3, 0, 3])
        assert each.missing([key(7), key(9), key(7), key(8)]).tolist() == [0, 3]
    assert store.nbytes == sum(path.stat().st_size for path in store.paths)
    fill(store, [2, 4])
    check(RowStore(store.folder, "f"), [3, 1, 0, 9, 5, 2, 4])


def test_rows_without_keys_are_numbered(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 1000)
    store = RowStore(tmp_path, "f")
    with store.locked(), store.writing(pyarrow.schema({"ids": pyarrow.list_(pyarrow.int32())})):
        store.append({"ids": [np.arange(2), np.arange(0)]})
        store.append({"ids": [[7]]})
    assert [row["ids"] for row in store.rows([2, 1, 0], ["ids"])] == [[7], [], [0, 1]]
    assert len(store.paths) == 1 and store.find([key(1)]).tolist() == [-1]


def test_files_have_a_size_and_rows_may_be_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 100)
    store = RowStore(tmp_path, "f")
    fill(store, range(40), size=1)
    assert len(store.paths) in range(5, 39)
    check(store, range(40))
    check(RowStore(tmp_path, "f"), [39, 0, 20], [39, 0, 20])
    store.clear()
    assert len(store) == 0 and store.missing([key(3)]).tolist() == [0]
    fill(store, [3, 1])
    check(RowStore(tmp_path, "f"), [3, 1])
    assert len(list(tmp_path.glob("rows-*"))) == 1


def test_an_error_takes_away_what_is_not_complete(tmp_path):
    store = RowStore(tmp_path, "f")
    with pytest.raises(RuntimeError, match="coffee"), store.locked(), store.writing(SCHEMA):
        store.append(columns([1, 2]))
        raise RuntimeError("out of coffee")
    for each in (store, RowStore(tmp_path, "f")):
        check(each, [1, 2])
    assert len(list(tmp_path.glob("rows-*"))) == 1
    # What does not fit the schema is told at once, and leaves nothing.
    with pytest.raises(pyarrow.ArrowInvalid), store.locked(), store.writing(SCHEMA):
        store.append(columns([4]) | {"key": [b"short"]})
    assert len(list(tmp_path.glob("rows-*"))) == 1
    fill(store, [3])
    check(store, [1, 2, 3])


def test_damage_is_met_when_opening(tmp_path, caplog):
    store = RowStore(tmp_path, "f")
    fill(store, range(6))
    path = store.paths[1]
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    opened = RowStore(tmp_path, "f")
    check(opened, [0, 1, 4, 5])
    assert str(path) in caplog.text and "568" in caplog.text and "2 rows" in caplog.text
    fill(opened, [3, 2])
    check(opened, [0, 1, 4, 5, 3, 2])
    assert not path.exists()


def test_what_another_process_wrote_is_known_with_the_lock(tmp_path):
    first, second = RowStore(tmp_path, "f"), RowStore(tmp_path, "f")
    fill(first, [1, 2])
    assert len(second) == 0
    with second.locked():
        check(second, [1, 2])
    fill(second, [3])
    check(RowStore(tmp_path, "f"), [1, 2, 3])


def test_a_foreign_folder_is_refused(tmp_path):
    fill(RowStore(tmp_path, "f"), [1])
    with pytest.raises(StoreError, match=r"manifest.json .*\bf\b.*\bg\b"):
        RowStore(tmp_path, "g")
