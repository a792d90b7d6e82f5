"""Schema of rows, which are made of the records of data files, and problems made of rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from pathlib import Path
from typing import Any, NoReturn

from ...problems import MathWordProblem
from ...problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from ..data_error import DataError


COLUMNS = {
    "id": "string",
    "text": "string",
    "equation": "string",
    "answer": "string",
    "language": "string",
    "context": "string",
    "kind": "string",
    "dataset": "string",
    "fold": "int64",
    "file": "string",
    "line": "int64",
}
"""
Names and types of the columns.

- `id`: as in the source, not always unique. `text`: the problem. `language`: `"zh"` or `"en"`.
- `equation`, `answer`: as written; `""` if the source has none. Several of them are joined by ` ; `.
- `context`: name of the context that several questions share. `kind`: kind of problem, for separate accuracies. Both
  are `""` if the data set has none.
- `dataset`: name of the data set. `fold`: its fold, -1 if it is in none.
- `file`, `line`: name of the source file and 1-based line in it (1-based record of a JSON array).
"""


def __getattr__(name: str):
    if name != "FEATURES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datasets import Features, Value

    return Features({column: Value(dtype) for column, dtype in COLUMNS.items()})


SEPARATOR = " ; "  # between the equations of a system and between several answers


@dataclass(frozen=True)
class Record:
    """Record of a data file. Its methods raise [`DataError`] with file, line and field."""

    fields: Mapping[str, Any]
    file: str
    line: int  # from 1; in a JSON array the number of the record

    def fail(self, message: str, field: str | None = None) -> NoReturn:
        """Raise a [`DataError`] that names the record."""
        raise DataError(message, self.file, self.line, field)

    def text(self, field: str) -> str:
        """Read a string."""
        value = self._required(field)
        if not isinstance(value, str):
            self.fail(f"expected a string, not {_describe(value)}", field)
        return self._written(field, value)

    def scalar(self, field: str) -> str:
        """Read a string or number as a string."""
        return self._written(field, self._required(field))

    def joined(self, field: str) -> str:
        """Read a string, a number, or a list of them joined by `SEPARATOR`."""
        value = self._required(field)
        values = value if isinstance(value, list) else [value]
        return SEPARATOR.join(self._written(field, item) for item in values)

    def index(self, field: str) -> int | None:
        """Read a non-negative whole number, or `None` for null."""
        if field not in self.fields:
            self.fail("the field is missing", field)
        value = self.fields[field]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.fail(f"expected a whole number from 0 on, or null, not {_describe(value)}", field)
        return value

    def first_of(self, names: tuple[str, ...]) -> str | None:
        """Return the first of several names that has a value in the record."""
        return next((name for name in names if self.fields.get(name) is not None), None)

    def _required(self, field: str) -> Any:
        value = self.fields.get(field)
        if value is None:
            self.fail("the field is null" if field in self.fields else "the field is missing", field)
        return value

    def _written(self, field: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(f"expected a string or number, not {_describe(value)}", field)
        written = as_text(value)
        try:
            written.encode()
        except UnicodeEncodeError:
            self.fail("the text is not UTF-8", field)
        return written


def _describe(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"


def as_text(value: str | float) -> str:
    """Write a number as in answers and equations: 0.00001, not 1e-05."""
    plain = isinstance(value, float) and math.isfinite(value)
    return format(Decimal(repr(value)), "f") if plain else str(value)


def make_row(
    record: Record,
    dataset: str,
    language: str,
    text: str,
    equation: str = "",
    answer: str = "",
    id: str | None = None,
    fold: int | None = None,
    context: str = "",
    kind: str = "",
) -> dict[str, Any]:
    """Make a row of the schema, with the line as the default `id`; `DataError` if the text is empty or too long."""
    if not text.strip():
        record.fail("the problem text is empty", "text")
    if len(text) > MAX_TEXT_LENGTH:
        record.fail(TOO_LONG, "text")
    return {
        "id": str(record.line) if id is None else id,
        "text": text,
        "equation": equation,
        "answer": answer,
        "language": language,
        "context": context,
        "kind": kind,
        "dataset": dataset,
        "fold": -1 if fold is None else fold,
        "file": Path(record.file).name,
        "line": record.line,
    }


def problem_from_row(row: Mapping[str, Any], parse_number_words: bool | None = None) -> MathWordProblem:
    """
    Make the problem of a row of [`load_mwp_dataset`]. Only `text` is required; the language is `"zh"` by default, and
    answer and equation may be numbers. For `parse_number_words` see [`~problems.MathWordProblem`].
    """
    return MathWordProblem(
        text=row.get("text"),
        equation=_written(row.get("equation")),
        answer=_written(row.get("answer")),
        id=str(row.get("id") or ""),
        language=row.get("language") or "zh",
        parse_number_words=parse_number_words,
        context=row.get("context") or "",
        kind=row.get("kind") or "",
    )


def _written(value: Any) -> str | None:
    """Return a number as text, and `None` for an empty text."""
    return as_text(value) if isinstance(value, Number) else value or None
