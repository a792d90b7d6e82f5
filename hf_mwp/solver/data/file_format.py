"""Names of the fields, encoding and separator of files of problems: given by the user, or detected."""

import codecs
import csv
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from hf_mwp.utils.checks import check_options
from hf_mwp.utils.option import option
from hf_mwp.utils.yaml_values import parse_mapping

from .data_error import DataError


ALIASES = {
    "text": ("text", "original_text", "sQuestion", "problem", "question", "Question"),
    "equation": ("equation", "Equation", "formula", "lEquations"),
    "answer": ("answer", "Answer", "ans", "lSolutions"),
    "id": ("id", "ID", "iIndex"),
    "body": ("body", "Body"),
    "language": ("language",),
    "context": ("context", "ctx"),
}
"""Field names for each column. The first field with a value is used. A `body` is put before the text."""

# Parts of other field names from which the fields of a file are guessed, for the message about missing fields.
HINTS = {
    "text": ("question", "problem", "text", "query", "prompt", "exercise", "题目", "问题", "题干", "原题"),
    "equation": ("equation", "formula", "expression", "算式", "方程", "公式", "列式"),
    "answer": ("answer", "result", "solution", "label", "value", "答案", "结果", "得数"),
}

_EQUATION = re.compile(r"([a-zA-Z]\s*=)?[\d\s.,()%]*[-+*/^×÷][-+*/^×÷=\d\s.,()%]*(=\s*[a-zA-Z])?")
_NUMBER = re.compile(r"-?\d[\d.,/]*%?")

SAMPLE_SIZE = 1 << 20  # bytes at the beginning of a file, by which its encoding is detected
SAMPLE_ROWS = 20  # rows by which the separator of a CSV file is detected
SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|"}
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MOST_NULS = 0.1  # share of NUL bytes above which a file is not taken as text
# A text is taken as GB 18030 if these shares of its characters are frequent in Chinese, and in Chinese problems. The
# second share tells it from Korean in EUC-KR.
LEAST_CHINESE = 0.95
LEAST_USUAL = 0.02
USUAL_CHARACTERS = "的一是有在多少几个了求"


@dataclass(frozen=True)
class FileFormat:
    """Format of files of problems. `columns` maps columns of the schema (keys of `ALIASES`) to the names of the fields
    in the files; `encoding` and `separator` (of CSV files) are detected if they are `None`. Raises `ValueError` for an
    unknown column, encoding or separator."""

    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        for column in self.columns:
            if column not in ALIASES:
                columns = ", ".join(ALIASES)
                raise ValueError(f"`columns` has no column {column!r}. Use text=FIELD, with one of {columns}.")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                examples = "utf-8, utf-16-le, gb18030, big5 or cp1252"
                raise ValueError(f"`encoding` is unknown: {self.encoding!r}. Use, for example, {examples}.") from None
        if self.separator is not None:
            separator = SEPARATOR_NAMES.get(self.separator, self.separator)
            if len(separator) != 1 or separator in '"\r\n':
                raise ValueError(f"`separator` must be one character, or tab, got {self.separator!r}.")
            object.__setattr__(self, "separator", separator)

    def names_of(self, column: str, usual: bool = True) -> tuple[str, ...]:
        """Return the possible field names of a column: the given name first, then, with `usual` or without a given
        name, the usual names."""
        field_name = self.columns.get(column)
        if field_name is None:
            return ALIASES[column]
        if usual:
            return (field_name, *ALIASES[column])
        return (field_name,)


@dataclass(kw_only=True)
class FileArguments:
    """Options that describe the files of problems."""

    columns: dict | str | None = option(
        None,
        "Names of the fields in files of problems, as text=question,answer=result or a mapping in YAML or JSON. "
        "Columns: text, equation, answer, id, body, language, context.",
        common=True,
    )
    encoding: str | None = option(
        None, "Encoding of files of problems, such as gb18030; UTF-8, UTF-16 and GB 18030 are detected."
    )
    separator: str | None = option(
        None, "Separator of the columns in CSV files, such as ; or tab; comma, semicolon, tab and | are detected."
    )

    def __post_init__(self):
        check_options(self)
        self.columns = parse_columns(self.columns)
        _ = self.file_format  # Checks the values.

    @property
    def file_format(self) -> FileFormat:
        """The options as a [`FileFormat`]."""
        return FileFormat(self.columns or {}, self.encoding, self.separator)


def parse_columns(value: dict | str | None) -> dict[str, str] | None:
    """Return the mapping that `columns` describes: `text=question,answer=result`, or a mapping."""
    if isinstance(value, str) and "=" in value and not value.lstrip().startswith("{"):
        pairs = value.split(",")
        value = {}
        for pair in pairs:
            column, _, name = pair.partition("=")
            value[column.strip()] = name.strip()
    mapping = parse_mapping("columns", value)
    if mapping is None:
        return None
    columns = {}
    for column, name in mapping.items():
        if name in (None, ""):
            raise ValueError(f"`columns` names no field for {column!r}. Use text=FIELD,answer=FIELD.")
        columns[str(column)] = str(name)
    return columns


def detect_encoding(sample: bytes, path: Path) -> str:
    """Return the encoding of a text from its beginning: UTF-16 with a byte order mark, UTF-8, or GB 18030 (also GBK
    and GB2312) if the text is not UTF-8 and nearly all of its characters are frequent in Chinese. Otherwise return
    UTF-8, so that each line that is not UTF-8 is rejected. Raises `DataError` for UTF-16 without a mark."""
    if sample.startswith(UTF16_MARKS):
        return "utf-16"
    # A text may contain single NUL characters.
    if b"\0" in sample[:2] or sample.count(b"\0") > MOST_NULS * len(sample):
        remedy = "Pass its encoding as --encoding utf-16-le or utf-16-be, or save it as UTF-8"
        raise DataError(f"UTF-16 without a byte order mark, or not a text file. {remedy}", path, 1)
    lines = [line for line in sample.splitlines() if not line.isascii()]
    # The last line of the sample may be cut inside a character.
    complete = lines[:-1] if len(lines) > 1 else lines
    readable = [line for line in complete if _is_valid(line, "utf-8")]
    # A few damaged lines do not change the encoding of a file.
    if len(readable) * 2 > len(complete) or not lines:
        return "utf-8-sig"
    text = codecs.getincrementaldecoder("gb18030")("replace").decode(b"\n".join(lines))
    characters = [character for character in text if not character.isascii()]
    num_frequent = sum(map(_is_frequent_in_chinese, characters))
    num_usual = sum(map(USUAL_CHARACTERS.count, characters))
    if num_frequent >= LEAST_CHINESE * len(characters) and num_usual >= LEAST_USUAL * len(characters):
        return "gb18030"
    return "utf-8-sig"


def _is_valid(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_frequent_in_chinese(character: str) -> bool:
    """Return whether a character is punctuation or one of the 3,755 characters of the first level of GB2312."""
    try:
        code = character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return 0xA1 <= code[0] <= 0xA3 or 0xB0 <= code[0] <= 0xD7


def detect_separator(lines: Sequence[str], file_format: FileFormat, path: Path) -> str:
    """Return the separator of a CSV file from its first lines: the one that makes the header contain a known field, or
    else divides all lines into the same number of cells. Raises `DataError` if this is true of several."""
    field_names = set(chain.from_iterable(map(file_format.names_of, ALIASES)))
    tables = {}
    candidates = []
    for separator in SEPARATORS:
        rows = _cells(lines, separator)
        if not rows:
            continue
        tables[separator] = rows
        header = {cell.strip().lstrip("\ufeff") for cell in rows[0]}
        if len(header) > 1 and not field_names.isdisjoint(header):
            candidates.append(separator)
    if len(candidates) != 1:
        candidates = [separator for separator in candidates or tables if _is_table(tables[separator])]
    if len(candidates) > 1:
        separators = " or ".join(candidates).replace("\t", "tab")
        raise DataError(f"the separator of the columns may be {separators}. Pass it as --separator", path, 1)
    return candidates[0] if candidates else ","


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of lines; a last row that may go on after these lines is left out."""
    rows = []
    try:
        for row in csv.reader(lines, delimiter=separator, strict=True):
            if row:
                rows.append(row)
    except csv.Error:
        pass
    return rows[:SAMPLE_ROWS]


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    return len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def guess_columns(fields: Mapping[str, object]) -> dict[str, str]:
    """Return a guess at the fields of text, equation and answer of a record, by their names, or else by the value: the
    longest is the text, one with an operator and without words the equation, and the only number the answer. Fields
    with a usual name are left out."""
    usual_names = set(chain.from_iterable(ALIASES.values()))
    values = {}
    for name, value in fields.items():
        if name not in usual_names:
            values[name] = "" if value is None else str(value).strip()
    guess: dict[str, str] = {}
    # By the names.
    for column, hints in HINTS.items():
        for name in values:
            if name not in guess.values() and _resembles(name, hints):
                guess[column] = name
                break
    # By the values of the other fields.
    for name in guess.values():
        del values[name]
    if "text" not in guess and values:
        guess["text"] = max(values, key=lambda name: len(values[name]))
        del values[guess["text"]]
    equations = [name for name, value in values.items() if _EQUATION.fullmatch(value)]
    if "equation" not in guess and equations:
        guess["equation"] = equations[0]
    numbers = [name for name, value in values.items() if _NUMBER.fullmatch(value)]
    if "answer" not in guess and len(numbers) == 1:
        guess["answer"] = numbers[0]
    return {column: guess[column] for column in HINTS if column in guess}


def _resembles(name: str, hints: Sequence[str]) -> bool:
    lowered = str(name).casefold()
    is_close = bool(difflib.get_close_matches(lowered, hints, n=1, cutoff=0.8))
    return is_close or any(hint in lowered for hint in hints)


def missing_text_message(fields: Mapping[str, object]) -> str:
    """Return the message for a record in which no field is the text, with the option filled in by a guess."""
    try:
        "".join(map(str, fields)).encode()
    except UnicodeEncodeError:
        return "the names of the fields are not UTF-8. Pass the encoding of the file as --encoding, such as gb18030"
    guess = {"text": "FIELD"} | guess_columns(fields)
    flag = ",".join(f"{column}={name}" for column, name in guess.items())
    names = ", ".join(map(str, fields)) or "missing"
    return (
        f"no field has the usual name of a text. The fields are {names}. Say which is which: "
        f'--columns "{flag}", or columns={guess!r} in Python'
    )
