"""Names of fields, encodings and separators of files of problems: given, detected, or refused with a remedy."""

import gzip
from pathlib import Path

import pytest

from hf_mwp.solver.corpus import read_texts
from hf_mwp.solver.data import DataError, load_mwp_dataset
from hf_mwp.solver.data.file_contents import ANY_FORMAT, read_entries
from hf_mwp.solver.data.file_format import FileArguments, FileFormat, guess_columns
from hf_mwp.solver.data.problem_lines import problem_batches
from tests.solver.data.problem_files import write_lines


def rows_of(template: str) -> list[tuple[str, str, str]]:
    """Rows of text, equation and answer, whose numbers are `a` and `b` in the template of the text."""
    return [(template.format(a=a, b=a + 1), f"x={a}+{a + 1}", str(2 * a + 1)) for a in range(2, 9)]


CHINESE = rows_of("小明有{a}个苹果，又买了{b}个，一共有多少个？")
TRADITIONAL = rows_of("小明有{a}個蘋果，又買了{b}個，一共有多少個？")
ENGLISH = rows_of("Tom has {a} pears, then buys {b}. How many?")
USUAL_HEADER = ("text", "equation", "answer")
HEADER = ("my_text", "eq", "res")
COLUMNS = {"text": "my_text", "equation": "eq", "answer": "res"}
SEPARATORS = (",", ";", "\t", "|")


def write(path: Path, rows, header=USUAL_HEADER, separator=",", encoding="utf-8") -> Path:
    """Write a CSV file; a cell with the separator is quoted."""
    lines = []
    for row in [header, *rows]:
        cells = [f'"{cell}"' if separator in cell else cell for cell in row]
        lines.append(separator.join(cells) + "\n")
    data = "".join(lines).encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path: Path, file_format=ANY_FORMAT) -> list[tuple]:
    """Read the cells of each row. Raises the error of a damaged row."""
    rows = []
    for _, entry in read_entries(path, file_format=file_format):
        if isinstance(entry, DataError):
            raise entry
        rows.append(tuple(entry.values()))
    return rows


def load(path: Path, **options) -> list[tuple]:
    train = load_mwp_dataset(path, **options)["train"]
    return list(zip(train["text"], train["equation"], train["answer"], strict=True))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb2312", "gb18030"])
def test_encodings_and_separators_are_detected(tmp_path, encoding):
    for separator in SEPARATORS:
        assert read(write(tmp_path / "a.csv", CHINESE, USUAL_HEADER, separator, encoding)) == CHINESE
        assert read(write(tmp_path / "a.csv.gz", CHINESE, USUAL_HEADER, separator, encoding)) == CHINESE


@pytest.mark.parametrize("separator", SEPARATORS)
def test_separators_are_detected_with_other_columns(tmp_path, separator):
    path = write(tmp_path / "a.csv", ENGLISH, HEADER, separator)
    assert read(path, FileFormat(COLUMNS)) == ENGLISH
    with pytest.raises(DataError, match='--columns "text=my_text,equation=eq,answer=res"'):
        load(path)


@pytest.mark.parametrize(
    ("rows", "encoding"), [(TRADITIONAL, "big5"), (CHINESE, "utf-16-le"), (CHINESE, "utf-16-be"), (CHINESE, "hz")]
)
def test_other_encodings_are_given(tmp_path, rows, encoding):
    path = write(tmp_path / "a.csv", rows, encoding=encoding)
    if encoding != "hz":  # its bytes are ASCII
        with pytest.raises(DataError, match="--encoding"):
            load(path)
    assert load(path, encoding=encoding) == rows


@pytest.mark.parametrize(
    ("template", "encoding"),
    [
        ("철수는 사과를 {a}개 가지고 있고 2개를 더 샀습니다. 모두 몇 개입니까?", "euc_kr"),
        ("太郎はりんごを{a}個持っています。2個もらうと何個ですか。", "euc_jp"),
        ("Ein Café verkauft {a} Brötchen für 2 £.", "latin-1"),
        ("У Маши {a} яблок и 2 груши. Сколько всего?", "cp1251"),
    ],
)
def test_other_languages_are_not_taken_for_chinese(tmp_path, template, encoding):
    path = write(tmp_path / "a.csv", rows_of(template), encoding=encoding)
    with pytest.raises(DataError, match="not UTF-8.*--encoding"):
        load(path)


def test_a_few_damaged_lines_do_not_change_the_encoding(tmp_path):
    path = write(tmp_path / "a.csv", CHINESE)
    path.write_bytes(path.read_bytes().replace("苹".encode(), b"\xb5\xc4", 1))
    with pytest.raises(DataError, match="line 2.*not UTF-8"):
        load(path)
    assert load(path, on_error="skip") == CHINESE[1:]


def test_unclear_separators_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;a,y;b\n1;2,3;4\n5;6,7;8\n")
    with pytest.raises(DataError, match="may be , or ;.*--separator"):
        read(path)
    assert read(path, FileFormat(separator=";")) == [("1", "2,3", "4"), ("5", "6,7", "8")]


def test_columns_are_used_wherever_files_of_problems_are_read(tmp_path):
    path = write(tmp_path / "own.csv", ENGLISH, HEADER)
    extra = [("Ann has 3 cups and buys 4 more. How many cups?", "x=3+4", "7")]
    usual = write(tmp_path / "usual.csv", extra)
    assert load(path, columns=COLUMNS, extra_train=usual) == ENGLISH + extra
    file_format = FileFormat(COLUMNS)
    assert list(read_texts([path], file_format=file_format)) == [ENGLISH[0][0]]
    assert next(problem_batches([], str(path), 1, file_format)) == [{"text": ENGLISH[0][0]}]
    with pytest.raises(DataError, match="--columns"):
        list(read_texts([path]))
    with pytest.raises(DataError, match="--columns"):
        next(problem_batches([], str(path), 2))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "my_txt"}, "field 'my_txt'.*The fields are my_text, eq, res"),
        (COLUMNS | {"answer": "result"}, "field 'result': no record has this field.*my_text, eq, res"),
    ],
)
def test_a_misspelt_field_is_named(tmp_path, columns, message):
    path = write(tmp_path / "a.csv", ENGLISH, HEADER)
    with pytest.raises(DataError, match=message):
        load(path, columns=columns)


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
    [
        "text=question,answer=result",
        " text = question , answer = result",
        "{text: question, answer: result}",
        {"text": "question", "answer": "result"},
    ],
)
def test_columns_are_read_from_flags_and_yaml(columns):
    assert FileArguments(columns=columns).columns == {"text": "question", "answer": "result"}


def test_separator_may_have_a_name():
    assert FileArguments(separator="tab").file_format.separator == "\t"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "question"}, "`columns`.*mapping"),
        ({"columns": "text="}, "`columns`.*'text'"),
        ({"columns": "texts=question"}, "`columns`.*'texts'.*text, equation, answer"),
        ({"encoding": "gb"}, "`encoding`.*'gb'.*gb18030"),
        ({"separator": ";;"}, "`separator`.*';;'"),
    ],
)
def test_impossible_formats_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FileArguments(**options)


def test_json_lines_have_columns_too(tmp_path):
    records = [dict(zip(HEADER, row, strict=True)) for row in ENGLISH]
    assert load(write_lines(tmp_path / "a.jsonl", records), columns=COLUMNS) == ENGLISH


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_file_with_a_single_row_is_detected(tmp_path, ending):
    path = tmp_path / "train.csv"
    path.write_bytes(f"题目;算式;结果\n小明有3个苹果又买5个共几个？;3+5;8{ending}".encode("gbk"))
    assert read(path) == [("小明有3个苹果又买5个共几个？", "3+5", "8")]


def test_field_names_in_an_unknown_encoding_are_not_shown(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes("Größe;Zahl\nWie groß ist 3+5?;8\n".encode("latin-1"))
    with pytest.raises(DataError, match="names of the fields are not UTF-8. Pass .* --encoding"):
        load(path)


@pytest.mark.parametrize("name", ["context", "ctx"])
def test_a_file_names_the_context_of_its_questions(tmp_path, name):
    records = [
        {"text": "Ann has 3 cups. She buys 4. How many cups?", "equation": "x=3+4", name: "cups"},
        {"text": "Bob has 5 pens. He buys 2. How many pens?", "equation": "x=5+2", name: None},
    ]
    path = write_lines(tmp_path / "a.jsonl", records)
    assert load_mwp_dataset(path)["train"]["context"] == ["cups", ""]
