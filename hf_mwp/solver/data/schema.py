"""Schema of rows, and functions that create rows from records and problems from rows."""

import math
from collections.abc import Iterable, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

from hf_mwp.runtime.numbers.masked_text import DEFAULT_READING
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.language import language_of

from .record import Record, as_text


# Names and types of the columns. A missing text is `""`.
COLUMNS = {
    "id": "string",  # Id in the source, not always unique.
    "text": "string",
    "equation": "string",  # As written in the source. Several equations or answers are joined by `SEPARATOR`.
    "answer": "string",
    "language": "string",  # "zh" or "en".
    "context": "string",  # Name of the context that several questions share.
    "kind": "string",  # Kind of problem, for separate accuracies.
    "dataset": "string",
    "fold": "int64",  # -1 for a problem without a fold.
    "file": "string",  # Name of the source file.
    "line": "int64",  # 1-based line in the file; in a JSON array, 1-based number of the record.
}


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
    equation: str = "",
    answer: str = "",
    id: str | None = None,
    fold: int | None = None,
) -> dict[str, Any]:
    """Create a row of the schema (default `id`: the line). Raises `DataError` if the text is empty or too long."""
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
        "context": "",
        "kind": "",
        "dataset": dataset,
        "fold": -1 if fold is None else fold,
        "file": Path(record.file).name,
        "line": record.line,
    }


def problems_from(
    sources: Iterable[str | MathWordProblem | Mapping[str, Any]],
    parse_number_words: bool | None = None,
    language: str | None = None,
    number_reading: str = DEFAULT_READING,
) -> list[MathWordProblem]:
    """Return the problem of each source ([`problem_from`]). Raises `TypeError` with the index of a source that has no
    text."""
    problems: list[MathWordProblem] = []
    try:
        for source in sources:
            problems.append(problem_from(source, parse_number_words, language, number_reading))
    except TypeError as error:
        raise TypeError(f"problems[{len(problems)}]: {error}") from error
    return problems


def problem_from(
    source: str | MathWordProblem | Mapping[str, Any],
    parse_number_words: bool | None = None,
    language: str | None = None,
    number_reading: str = DEFAULT_READING,
) -> MathWordProblem:
    """Return the problem of a text or row, or a problem unchanged. `language` is used for a text, and for a row
    without a language; by default, texts with Chinese characters are Chinese and all others English."""
    if isinstance(source, MathWordProblem):
        return source
    is_row = isinstance(source, Mapping)
    text = source.get("text") if is_row else source
    if language is None:
        language = language_of(text) if isinstance(text, str) else "en"
    if is_row:
        return problem_from_row(source, parse_number_words, language, number_reading)
    return MathWordProblem(
        text=text, language=language, parse_number_words=parse_number_words, number_reading=number_reading
    )


@checked
def problem_from_row(
    row: Mapping[str, Any],
    parse_number_words: bool | None = None,
    language: str = "zh",
    number_reading: str = DEFAULT_READING,
) -> MathWordProblem:
    """Create the problem of a row of [`load_mwp_dataset`]. Only `text` is required. `language` is used for a row
    without one, and answer and equation may be numbers. NaN is a missing value, as in pandas. See
    [`~problems.MathWordProblem`] for `parse_number_words` and `number_reading`."""
    text = row.get("text")
    row = without_nan(row)
    name = row.get("id", "")
    return MathWordProblem(
        text=text,
        equation=_written(row.get("equation")),
        answer=_written(row.get("answer")),
        id="" if name is None else str(name),
        language=row.get("language") or language,
        parse_number_words=parse_number_words,
        context=row.get("context") or "",
        kind=row.get("kind") or "",
        number_reading=number_reading,
    )


def without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without its NaN values."""
    return {name: value for name, value in row.items() if not _is_nan(value)}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _written(value: Any) -> str | None:
    """Convert a number to text, and an empty text to `None`."""
    if isinstance(value, Number):
        return as_text(value)
    return value or None
