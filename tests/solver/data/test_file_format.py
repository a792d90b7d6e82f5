"""Names of fields, encodings and separators of files of problems: given, detected, or refused with a way out."""

import gzip
import json
import re

import pytest

from hf_mwp.solver.corpus import read_texts
from hf_mwp.solver.data import DataError, load_mwp_dataset
from hf_mwp.solver.data.file_contents import read_entries
from hf_mwp.solver.data.file_format import FileArguments, FileFormat, guess_columns
from hf_mwp.solver.data.problem_lines import problem_batches


CHINESE = [
    (f"小明有{a}个苹果，又买了{a + 1}个，一共有多少个？", f"x={a}+{a + 1}", str(2 * a + 1)) for a in range(2, 9)
]
TRADITIONAL = [
    (f"小明有{a}個蘋果，又買了{a + 1}個，一共有多少個？", f"x={a}+{a + 1}", str(2 * a + 1)) for a in range(2, 9)
]
ENGLISH = [(f"Tom has {a} pears, then buys {a + 1}. How many?", f"x={a}+{a + 1}", str(2 * a + 1)) for a in range(2, 9)]
USUAL = ("text", "equation", "answer")
OWN = ("my_text", "eq", "res")
COLUMNS = {"text": "my_text", "equation": "eq", "answer": "res"}


def write(path, rows, header=USUAL, separator=",", encoding="utf-8"):
    """Write a CSV file; a cell with the separator is quoted."""
    lines = []
    for row in [header, *rows]:
        cells = [f'"{cell}"' if separator in cell else cell for cell in row]
        lines.append(separator.join(cells) + "\n")
    data = "".join(lines).encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows_of(path, **options):
    train = load_mwp_dataset(path, **options)["train"]
    return list(zip(train["text"], train["equation"], train["answer"], strict=True))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb2312", "gb18030"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_detected(tmp_path, name, encoding, separator):
    assert rows_of(write(tmp_path / name, CHINESE, USUAL, separator, encoding)) == CHINESE


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_detected_with_other_columns(tmp_path, separator):
    path = write(tmp_path / "a.csv", ENGLISH, OWN, separator)
    assert rows_of(path, columns=COLUMNS) == ENGLISH
    with pytest.raises(DataError, match='--columns "text=my_text,equation=eq,answer=res"'):
        rows_of(path)


@pytest.mark.parametrize(
    ("rows", "encoding"), [(TRADITIONAL, "big5"), (CHINESE, "utf-16-le"), (CHINESE, "utf-16-be"), (CHINESE, "hz")]
)
def test_other_encodings_are_given(tmp_path, rows, encoding):
    path = write(tmp_path / "a.csv", rows, encoding=encoding)
    if encoding != "hz":  # its bytes are ASCII
        with pytest.raises(DataError, match="--encoding"):
            rows_of(path)
    assert rows_of(path, encoding=encoding) == rows


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("철수는 사과를 {}개 가지고 있고 2개를 더 샀습니다. 모두 몇 개입니까?", "euc_kr"),
        ("太郎はりんごを{}個持っています。2個もらうと何個ですか。", "euc_jp"),
        ("Ein Café verkauft {} Brötchen für 2 £.", "latin-1"),
        ("У Маши {} яблок и 2 груши. Сколько всего?", "cp1251"),
    ],
)
def test_other_languages_are_not_taken_for_chinese(tmp_path, text, encoding):
    rows = [(text.format(number), f"x={number}+2", str(number + 2)) for number in range(2, 30)]
    with pytest.raises(DataError, match="not UTF-8.*--encoding"):
        rows_of(write(tmp_path / "a.csv", rows, encoding=encoding))


def test_a_few_damaged_lines_do_not_change_the_encoding(tmp_path):
    path = write(tmp_path / "a.csv", CHINESE)
    path.write_bytes(path.read_bytes().replace("苹".encode(), b"\xb5\xc4", 1))
    with pytest.raises(DataError, match="line 2.*not UTF-8"):
        rows_of(path)
    assert rows_of(path, on_error="skip") == CHINESE[1:]


def test_unclear_separators_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;a,y;b\n1;2,3;4\n5;6,7;8\n")
    assert [str(entry.reason) for _, entry in read_entries(path)] == [
        "the separator of the columns may be , or ;. Pass it as --separator"
    ]
    entries = [entry for _, entry in read_entries(path, file_format=FileFormat(separator=";"))]
    assert entries == [{"x": "1", "a,y": "2,3", "b": "4"}, {"x": "5", "a,y": "6,7", "b": "8"}]


def test_columns_are_used_wherever_files_of_problems_are_read(tmp_path):
    path = write(tmp_path / "own.csv", ENGLISH, OWN)
    extra = [("Ann has 3 cups and buys 4 more. How many cups?", "x=3+4", "7")]
    usual = write(tmp_path / "usual.csv", extra)
    assert rows_of(path, columns=COLUMNS, extra_train=usual) == ENGLISH + extra
    file_format = FileFormat(COLUMNS)
    assert list(read_texts([path], file_format=file_format)) == [ENGLISH[0][0]]
    batch = next(problem_batches([], str(path), 2, file_format))
    assert batch == [{"text": text} for text, _, _ in ENGLISH[:2]]
    for read in (lambda: list(read_texts([path])), lambda: next(problem_batches([], str(path), 2))):
        with pytest.raises(DataError, match="--columns"):
            read()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "my_txt"}, "field 'my_txt'.*The fields are my_text, eq, res"),
        (COLUMNS | {"answer": "result"}, "field 'result': no record has this field.*my_text, eq, res"),
    ],
)
def test_a_misspelt_field_is_named(tmp_path, columns, message):
    with pytest.raises(DataError, match=message):
        rows_of(write(tmp_path / "a.csv", ENGLISH, OWN), columns=columns)


def test_columns_of_a_dataset_with_a_name_are_refused():
    with pytest.raises(ValueError, match="`columns`.*asdiv_a"):
        load_mwp_dataset("asdiv_a", columns={"text": "question"})


@pytest.mark.parametrize(
    ("record", "guess"),
    [
        ({"nr": "1", "Question_EN": "How many?", "result": "3"}, {"text": "Question_EN", "answer": "result"}),
        ({"题目": "一共有多少？", "算式": "1+2", "答案": "3"}, {"text": "题目", "equation": "算式", "answer": "答案"}),
        ({"q": "Tom has 1.", "rechnung": "x=1+2", "r": 3}, {"text": "q", "equation": "rechnung", "answer": "r"}),
        ({"a": 1, "b": 2}, {"text": "a", "answer": "b"}),
        ({}, {}),
    ],
)
def test_columns_are_guessed(record, guess):
    assert guess_columns(record) == guess


@pytest.mark.parametrize(
    "columns",
    ["text=question,answer=result", " text = question , answer = result", "{text: question, answer: result}"],
)
def test_columns_are_read_from_flags_and_yaml(columns):
    expected = {"text": "question", "answer": "result"}
    assert FileArguments(columns=columns).columns == expected
    assert FileArguments(columns=expected).columns == expected
    assert FileArguments(separator="tab").file_format.separator == "\t"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "question"}, "`columns` must be a mapping"),
        ({"columns": "text="}, "`columns` names no field for 'text'"),
        ({"columns": "texts=question"}, "`columns` has no column 'texts'.*text, equation, answer"),
        ({"encoding": "gb"}, "`encoding` is unknown: 'gb'.*gb18030"),
        ({"separator": ";;"}, "`separator` must be one character, or tab, got ';;'"),
    ],
)
def test_impossible_formats_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message).replace(r"\.\*", ".*")):
        FileArguments(**options)


def test_json_lines_have_columns_too(tmp_path):
    path = tmp_path / "a.jsonl"
    records = (dict(zip(OWN, row, strict=True)) for row in ENGLISH)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert rows_of(path, columns=COLUMNS) == ENGLISH


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_file_with_a_single_row_is_detected(tmp_path, ending):
    path = tmp_path / "train.csv"
    path.write_bytes(f"题目;算式;结果\n小明有3个苹果又买5个共几个？;3+5;8{ending}".encode("gbk"))
    columns = {"text": "题目", "equation": "算式", "answer": "结果"}
    (row,) = load_mwp_dataset(path, columns=columns)["train"]
    assert (row["text"], row["equation"], row["answer"]) == ("小明有3个苹果又买5个共几个？", "3+5", "8")


def test_field_names_in_an_unknown_encoding_are_not_shown(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes("Größe;Zahl\nWie groß ist 3+5?;8\n".encode("latin-1"))
    with pytest.raises(DataError, match="names of the fields are not UTF-8. Pass .* --encoding"):
        load_mwp_dataset(path)


@pytest.mark.parametrize("name", ["context", "ctx"])
def test_a_file_names_the_context_of_its_questions(tmp_path, name):
    path = tmp_path / "a.jsonl"
    records = [
        {"text": "Ann has 3 cups. She buys 4. How many cups?", "equation": "x=3+4", "answer": "7", name: "cups"},
        {"text": "Bob has 5 pens. He buys 2. How many pens?", "equation": "x=5+2", "answer": "7", name: None},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    assert load_mwp_dataset(path)["train"]["context"] == ["cups", ""]
