"""SVAMP (Patel, Bhattamishra and Goyal 2021): 1,000 English problems that vary in what they ask."""

import json

from .errors import DataError
from .source import Record, Row, Source


SCHEMES = ("public",)


def load_svamp(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """The test part from the published `SVAMP.json`; it is meant to be solved after training on MAWPS and ASDiv-A."""
    path = source.path("SVAMP.json")
    try:
        values = json.loads("".join(line for _, line in source.lines("SVAMP.json")))
    except json.JSONDecodeError as error:
        raise DataError(f"is no complete JSON file ({error.msg})", path, error.lineno) from error
    if not isinstance(values, list):
        raise DataError("expected a list of problems", path)
    return {"test": source.make_rows((Record(value, path, line) for line, value in enumerate(values, 1)), _row)}


def _row(record: Record) -> Row:
    body, question = record.text("Body").strip(), record.text("Question").strip()
    text = f"{body} {question}" if body.endswith((".", "?", "!", ",")) else f"{body}. {question}"
    return record.row(record.text("ID"), text, record.text("Equation"), record.text("Answer"), "en")
