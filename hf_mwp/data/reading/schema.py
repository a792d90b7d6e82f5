"""The one schema of all data sets: what the source states, as it states it; the rest is computed from that."""

from collections.abc import Mapping
from numbers import Number
from pathlib import Path
from typing import Any

from ...problems import MathWordProblem
from ...problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from .record import Record, as_text


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

- `id`: as in the source; not unique in every set. `text`: the problem. `language`: `"zh"` or `"en"`.
- `equation`, `answer`: as written; `""` if the source has none. Several of them are joined by ` ; `.
- `context`: name of the context that a question shares with others. `kind`: kind of problem, with figures of its own.
  Both are `""` if the data set has none.
- `dataset`: name of the data set. `fold`: fold in its list of folds, -1 if it is in none.
- `file`, `line`: name of the source file and 1-based line in it (1-based record of a JSON array).
"""


def __getattr__(name: str):
    if name != "FEATURES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datasets import Features, Value

    return Features({column: Value(dtype) for column, dtype in COLUMNS.items()})


def make_row(
    record: Record,
    dataset: str,
    language: str,
    text: str,
    equation: str,
    answer: str,
    id: str | None = None,
    fold: int | None = None,
    context: str = "",
    kind: str = "",
) -> dict[str, Any]:
    """A row of the schema; without an `id` the line is taken. `DataError` if the text is empty or too long."""
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
    The problem that a row of [`load_mwp_dataset`] describes. Only `text` is needed; the language is Chinese if there
    is none; answer and equation may be numbers. Numerals in words are numbers by default in English, not in Chinese.
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
    """A number as text; `None` in place of an empty text."""
    return as_text(value) if isinstance(value, Number) else value or None
