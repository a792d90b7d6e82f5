"""Records of files; a damaged record is named with file, line and field, or is skipped and counted."""

import gzip
import json
import re
from pathlib import Path

import pytest

from hf_mwp.solver.data import DataError
from hf_mwp.solver.data.file_contents import RecordReader, read_entries, read_lines
from hf_mwp.solver.data.record import Record


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def check(path: Path, expected: list) -> None:
    """Check the fields of each record, or, with a pair of a line and a pattern, that the record is damaged."""
    for (line, entry), fields in zip(read_entries(path), expected, strict=True):
        if isinstance(fields, tuple):
            assert line == fields[0]
            assert re.search(fields[1], entry.reason.split(":")[0])
        else:
            assert entry == fields


def text_of_a(record: Record) -> str:
    return record.text("a")


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.json"])
def test_json_lines(tmp_path, name):
    path = write(tmp_path / name, '\ufeff{"a": 1}\n\n{"a": "\u2028"}\r\n{"a": 3}')
    assert list(read_entries(path)) == [(1, {"a": 1}), (3, {"a": "\u2028"}), (4, {"a": 3})]


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.jsonl"])
def test_json_array(tmp_path, name):
    check(write(tmp_path / name, '\n \n[\n{"a": 1},\n {"a": 2} ]\n'), [{"a": 1}, {"a": 2}])
    check(write(tmp_path / name, "[]"), [])


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "X.CSV"])
def test_csv(tmp_path, name):
    path = write(tmp_path / name, ' id,text \r\n1,"two\nlines, one ""field"""\n\n2,\n 3 , \n')
    assert list(read_entries(path)) == [
        (2, {"id": "1", "text": 'two\nlines, one "field"'}),
        (5, {"id": "2", "text": None}),
        (6, {"id": "3", "text": None}),
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.jsonl", '{"a": 1}\n{"a": 2}\n{"a": ', [{"a": 1}, {"a": 2}, (3, "complete JSON object")]),
        (
            "x.jsonl",
            '7\n[1]\n"a"\nnull\n{"a": 1}\n',
            [(1, "object.* int"), (2, "object.* list"), (3, "object.* str"), (4, "object.* NoneType"), {"a": 1}],
        ),
        # Integers that are too long to be read.
        (
            "x.jsonl",
            f'{{"a": "1"}}\n{{"a": {"1" * 5000}}}\n{{"a": "3"}}\n',
            [{"a": "1"}, (2, "JSON object"), {"a": "3"}],
        ),
        ("x.json", f'[{{"a": 1}}, {"1" * 5000}]', [(1, "JSON array.*damaged")]),
        ("x.json", '[{"a": 1},\n{"a": ', [(2, "JSON array.*damaged")]),
        ("x.json", '[{"a": 1} {"a": 2}]', [(1, "JSON array.*damaged")]),
        ("x.json", '[{"a": 1}, 7]', [{"a": 1}, (2, "JSON object.* int")]),
        ("x.json", "[", [(1, "JSON array.*damaged")]),
        (
            "x.csv",
            'id,text\n1\n2,b\n3,c,d\n4,"never closed\n5,e\n',
            [(2, "2 fields.* 1"), {"id": "2", "text": "b"}, (4, "2 fields.* 3"), (5, "CSV")],
        ),
        ("x.csv", "a,b,a\n1,2,3\n", [(1, "'a' twice")]),
        ("x.tsv", "a\tb\ta\n1\t2\t3\n", [(1, "'a' twice")]),
        ("x.jsonl.gz", b"no gzip", [(1, "gzip.*damaged")]),
        ("x.jsonl", '{"a": 1}\n'.encode("utf-16-le"), [(1, "UTF-16 without.*UTF-8")]),
        ("x.jsonl", '\ufeff{"a": 1}\n{"a": 2}'.encode("utf-16-le")[:-1], [{"a": 1}, (2, "UTF-16.*UTF-8")]),
    ],
)
def test_damaged_records_are_named(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    check(path, expected)


@pytest.mark.parametrize(("text", "fault"), [('{"a"', "':' delimiter at column 5"), ('{"a": "b', "at column 7")])
def test_the_column_of_a_fault(tmp_path, text, fault):
    path = write(tmp_path / "x.jsonl", f"{text}\n")
    ((_, error),) = read_entries(path)
    assert error.reason.endswith(fault)
    assert "at at" not in error.reason


def test_truncated_gzip(tmp_path):
    records = [{"a": number * 7919 % 10007} for number in range(2000)]
    data = gzip.compress("\n".join(map(json.dumps, records)).encode())
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    *entries, (line, error) = read_entries(path)
    assert [fields for _, fields in entries] == records[: len(entries)]
    assert isinstance(error, DataError)
    assert line == error.line == len(entries) + 1


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(DataError, match="Is a directory"):
        list(read_lines(tmp_path))


def test_reader_skips_and_keeps_errors(tmp_path):
    write(tmp_path / "x.jsonl", '{"a": "1"}\n{"a": [2]}\n{"b": "3"}\n{"a": null}\n{"a": "\\ud800"}\n{"a": "6"}\n{"a')
    with pytest.raises(DataError, match=r"x\.jsonl, line 2, field 'a': .*string.* list"):
        RecordReader(tmp_path).rows(text_of_a, "x.jsonl")
    reader = RecordReader(tmp_path, "skip")
    assert reader.rows(text_of_a, "x.jsonl") == ["1", "6"]
    expected = [(2, "a", "list"), (3, "a", "missing.* b"), (4, "a", "null"), (5, "a", "UTF-8"), (7, None, "JSON")]
    for error, (line, field, reason) in zip(reader.damaged, expected, strict=True):
        assert (error.line, error.field) == (line, field)
        assert re.search(reason, error.reason)


def test_bytes_that_are_not_utf8_damage_one_record(tmp_path):
    write(tmp_path / "x.jsonl", '{"a": "好"}\n'.encode() + b'{"a": "\xff\xfe"}\n' + b'{"a": "c"}\n')
    reader = RecordReader(tmp_path, "skip")
    assert reader.rows(text_of_a, "x.jsonl") == ["好", "c"]
    assert [error.line for error in reader.damaged] == [2]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("name", "lines"), [("x.jsonl", ['{"a": "好"}\r\n']), ("x.csv.gz", ["a\r\n", "好\r\n"])])
def test_utf16_with_a_byte_order_mark(tmp_path, name, lines, encoding):
    path = write(tmp_path / name, ("\ufeff" + "".join(lines)).encode(encoding))
    assert list(read_lines(path)) == lines
    check(path, [{"a": "好"}])


def test_fields():
    fields = {"n": 3, "f": 1.5, "s": "a", "l": [1, "b"], "o": {}, "b": True, "z": None, "neg": -1}
    record = Record(fields, "x.jsonl", 1)
    assert record.text("n") == "3"
    assert record.text("f") == "1.5"
    assert record.text("s") == "a"
    assert record.joined("l") == "1 ; b"
    assert record.joined("s") == "a"
    assert record.index("n") == 3
    assert record.index("z") is None
    assert record.first_of(("missing", "z", "s", "n")) == "s"


@pytest.mark.parametrize(
    ("method", "field", "value"),
    [
        ("text", "a", [1]),
        ("text", "a", True),
        ("joined", "a", {}),
        ("index", "a", 1.5),
        ("index", "a", True),
        ("index", "a", -1),
        ("index", "missing", 1),
    ],
)
def test_fields_of_another_type_are_named(method, field, value):
    record = Record({"a": value}, "x.jsonl", 1)
    with pytest.raises(DataError) as caught:
        getattr(record, method)(field)
    assert caught.value.field == field


def test_floats_are_written_as_plain_decimals(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"a": [0.00001, 2e16, -1.5e-7, 6.0, 0.1, 1e400]}')
    ((line, fields),) = read_entries(path)
    written = Record(fields, path.name, line).joined("a")
    assert written == "0.00001 ; 20000000000000000 ; -0.00000015 ; 6.0 ; 0.1 ; inf"


def test_missing_file_is_never_skipped(tmp_path):
    with pytest.raises(DataError, match=r"x\.jsonl: .*x\.jsonl\.gz.* It is there\."):
        RecordReader(tmp_path, origin="It is there.").rows(dict, "x.jsonl")
    with pytest.raises(DataError, match=r"x\.jsonl\.gz"):
        RecordReader(tmp_path, "skip").rows(dict, "x.jsonl")


def test_blank_lines_of_a_list_are_left_out(tmp_path):
    write(tmp_path / "ids.txt", "3\n\n 5 \n")
    assert RecordReader(tmp_path).lines("ids.txt") == ["3", "5"]
