"""ASDiv-A (Miao, Liang and Su 2020): the 1,218 arithmetic problems of ASDiv, in English."""

from .folds import split_by_fold
from .source import Record, Row, Source


SCHEMES = ("five_fold",)


def load_asdiv_a(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """The published five folds."""
    return split_by_fold(source.rows("asdiv_a.jsonl", _row), fold)


def _row(record: Record) -> Row:
    text = f"{record.text('body').strip()} {record.text('question').strip()}".strip()
    fold = int(record.text("fold"))
    return record.row(record.text("id"), text, record.text("formula"), record.text("answer"), "en", fold)
