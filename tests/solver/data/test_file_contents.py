"""Damaged files: each names file, line and field, or is skipped and counted."""

import gzip
import json
import re
from pathlib import Path

import pytest

from hf_mwp.solver.data import DataError
from hf_mwp.solver.data.file_contents import RecordReader, read_entries, read_lines
from hf_mwp.solver.data.record import Record


def read(path: Path) -> list:
    """Fields of each record, or line and reason of what is damaged."""
    return [
        (line, entry.reason.split(":")[0]) if isinstance(entry, DataError) else entry
        for line, entry in read_entries(path)
    ]


def check(path: Path, expected: list) -> None:
    """Each record has the expected fields, or is damaged in the expected line for the expected reason."""
    for found, entry in zip(read(path), expected, strict=True):
        if isinstance(entry, tuple):
            assert found[0] == entry[0] and re.search(entry[1], found[1])
        else:
            assert found == entry


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.json", "x.json.gz"])
def test_json_lines(tmp_path, name):
    path = write(tmp_path / name, '\ufeff{"a": 1}\n\n{"a": "\u2028"}\r\n{"a": 3}')
    assert read(path) == [{"a": 1}, {"a": "\u2028"}, {"a": 3}]
    assert [line for line, _ in read_entries(path)] == [1, 3, 4]


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.jsonl"])
def test_json_array(tmp_path, name):
    assert read(write(tmp_path / name, '[\n{"a": 1},\n {"a": 2} ]\n')) == [{"a": 1}, {"a": 2}]
    assert read(write(tmp_path / name, "[]")) == []
    assert read(write(tmp_path / name, '\n \n[{"a": 1}]')) == [{"a": 1}]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "X.CSV"])
def test_csv(tmp_path, name):
    path = write(tmp_path / name, ' id,text \r\n1,"two\nlines, one ""field"""\n\n2,\n')
    assert list(read_entries(path)) == [
        (2, {"id": "1", "text": 'two\nlines, one "field"'}),
        (5, {"id": "2", "text": None}),
    ]


def test_truncated_json_lines(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"a": 1}\n{"a": 2}\n{"a": ')
    check(path, [{"a": 1}, {"a": 2}, (3, "complete JSON object")])


@pytest.mark.parametrize(("text", "fault"), [('{"a"', "':' delimiter at column 5"), ('{"a": "b', "at column 7")])
def test_the_column_of_a_fault(tmp_path, text, fault):
    path = write(tmp_path / "x.jsonl", f"{text}\n")
    ((_, error),) = read_entries(path)
    assert error.reason.endswith(fault) and "at at" not in error.reason


def test_records_that_are_no_objects(tmp_path):
    path = write(tmp_path / "x.jsonl", '7\n[1]\n"a"\nnull\n{"a": 1}\n')
    kinds = ((1, "int"), (2, "list"), (3, "str"), (4, "NoneType"))
    check(path, [*((line, f"JSON object.* {kind}") for line, kind in kinds), {"a": 1}])


def test_an_integer_too_long_to_be_read_damages_its_record(tmp_path):
    number = "1" * 5000
    path = write(tmp_path / "x.jsonl", f'{{"a": "1"}}\n{{"a": {number}}}\n{{"a": "3"}}\n')
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: .*digits"):
        RecordReader(tmp_path).rows(lambda record: record.fields, "x.jsonl")
    reader = RecordReader(tmp_path, "skip")
    assert reader.rows(lambda record: record.fields, path.name) == [{"a": "1"}, {"a": "3"}]
    assert [error.line for error in reader.damaged] == [2]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        (f'[{{"a": 1}}, {"1" * 5000}]', [(1, "JSON array.*damaged")]),
        ('[{"a": 1},\n{"a": ', [(2, "JSON array.*damaged")]),
        ('[{"a": 1} {"a": 2}]', [(1, "JSON array.*damaged")]),
        ('[{"a": 1}, 7]', [{"a": 1}, (2, "JSON object.* int")]),
        ("[", [(1, "JSON array.*damaged")]),
    ],
)
def test_damaged_json_array(tmp_path, text, entries):
    check(write(tmp_path / "x.json", text), entries)


def test_damaged_csv(tmp_path):
    path = write(tmp_path / "x.csv", 'id,text\n1\n2,b\n3,c,d\n4,"never closed\n5,e\n')
    check(path, [(2, "2 fields.* 1"), {"id": "2", "text": "b"}, (4, "2 fields.* 3"), (5, "CSV")])


def test_truncated_gzip(tmp_path):
    lines = "".join(f'{{"a": {number * 7919 % 10007}}}\n' for number in range(2000))
    data = gzip.compress(lines.encode())
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    *entries, last = read_entries(path)
    assert entries == [(number + 1, {"a": number * 7919 % 10007}) for number in range(len(entries))]
    assert isinstance(last[1], DataError) and last[0] == last[1].line == len(entries) + 1
    path.write_bytes(b"no gzip")
    check(path, [(1, "gzip.*damaged")])


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(DataError, match="Is a directory"):
        list(read_lines(tmp_path))


def test_reader_skips_and_keeps_errors(tmp_path):
    write(tmp_path / "x.jsonl", '{"a": "1"}\n{"a": [2]}\n{"b": "3"}\n{"a": null}\n{"a": "\\ud800"}\n{"a": "6"}\n{"a')

    def make(record):
        return {"a": record.text("a")}

    with pytest.raises(DataError, match=r"x\.jsonl, line 2, field 'a': .*string.* list") as caught:
        RecordReader(tmp_path).rows(make, "x.jsonl")
    assert (caught.value.line, caught.value.field) == (2, "a")
    reader = RecordReader(tmp_path, "skip")
    assert reader.rows(make, "x.jsonl") == [{"a": "1"}, {"a": "6"}]
    assert [(error.line, error.field) for error in reader.damaged] == [
        (2, "a"),
        (3, "a"),
        (4, "a"),
        (5, "a"),
        (7, None),
    ]
    assert [error.reason for error in reader.damaged[1:4]] == [
        "the field is missing. The fields are b",
        "the field is null",
        "the text is not UTF-8. If all of the file is in another encoding, pass it as --encoding",
    ]


def test_bytes_that_are_not_utf8_damage_one_record(tmp_path):
    (tmp_path / "x.jsonl").write_bytes('{"a": "好"}\n'.encode() + b'{"a": "\xff\xfe"}\n' + b'{"a": "c"}\n')
    reader = RecordReader(tmp_path, "skip")
    assert [row["a"] for row in reader.rows(lambda record: {"a": record.text("a")}, "x.jsonl")] == ["好", "c"]
    assert [error.line for error in reader.damaged] == [2]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv.gz", "x.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_byte_order_mark(tmp_path, name, encoding):
    content = {"x.jsonl": '{"a": "好"}\r\n', "x.csv.gz": "a\r\n好\r\n", "x.txt": "好\r\n"}[name]
    path = write(tmp_path / name, f"\ufeff{content}".encode(encoding))
    assert list(read_lines(path)) == content.splitlines(keepends=True)
    assert name == "x.txt" or read(path) == [{"a": "好"}]


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_other_utf16_is_named(tmp_path, name):
    path = write(tmp_path / name, '{"a": 1}\n'.encode("utf-16-le"))
    check(path, [(1, "UTF-16 without.*UTF-8")])
    path = write(path, '\ufeff{"a": 1}\n{"a": 2}'.encode("utf-16-le")[:-1])
    check(path, [{"a": 1}, (2, "UTF-16.*UTF-8")])


def test_fields(tmp_path):
    record = {"n": 3, "f": 1.5, "s": "a", "l": [1, "b"], "o": {}, "b": True, "z": None, "neg": -1}
    write(tmp_path / "x.jsonl", json.dumps(record))

    def values(record):
        assert record.text("n") == "3" and record.text("f") == "1.5" and record.text("s") == "a"
        assert record.joined("l") == "1 ; b" and record.joined("s") == "a"
        assert record.index("n") == 3 and record.index("z") is None
        assert record.first_of(("missing", "z", "s", "n")) == "s"
        for read, field in (
            (record.text, "l"),
            (record.text, "b"),
            (record.index, "f"),
            (record.index, "b"),
            (record.index, "neg"),
            (record.index, "missing"),
        ):
            with pytest.raises(DataError) as caught:
                read(field)
            assert caught.value.field == field
        with pytest.raises(DataError):
            record.joined("o")
        return {}

    assert RecordReader(tmp_path).rows(values, "x.jsonl") == [{}]


def test_floats_are_written_as_plain_decimals(tmp_path):
    numbers = "[0.00001, 2e16, -1.5e-7, 6.0, 0.1, 1e400]"
    path = write(tmp_path / "x.jsonl", f'{{"answer": 0.00001, "equation": {numbers}}}')
    (record,) = (Record(entry, path.name, line) for line, entry in read_entries(path))
    assert record.text("answer") == "0.00001"
    assert record.joined("equation") == "0.00001 ; 20000000000000000 ; -0.00000015 ; 6.0 ; 0.1 ; inf"


def test_missing_file_says_where_to_get_it(tmp_path):
    with pytest.raises(DataError, match=r"x\.jsonl: .*x\.jsonl\.gz.* It is there\."):
        RecordReader(tmp_path, origin="It is there.").rows(dict, "x.jsonl")
    # A missing file is no damaged record: it is never skipped.
    with pytest.raises(DataError, match=r"x\.jsonl\.gz"):
        RecordReader(tmp_path, "skip").rows(dict, "x.jsonl")


def test_lists_have_no_blank_lines(tmp_path):
    write(tmp_path / "ids.txt", "3\n\n 5 \n")
    assert RecordReader(tmp_path).lines("ids.txt") == ["3", "5"]


def test_blank_cells_are_missing_values(tmp_path):
    check(write(tmp_path / "x.csv", "a, b\n 1 , \n"), [{"a": "1", "b": None}])


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_a_column_that_is_there_twice(tmp_path, name):
    comma = "\t" if name.endswith("tsv") else ","
    path = write(tmp_path / name, comma.join("aba") + "\n" + comma.join("123") + "\n")
    check(path, [(1, "the header has the column 'a' twice")])
