"""Ape210k (Zhao et al. 2020): Chinese problems, many of them with fractions and percentages."""

from .source import Record, Row, Source


SCHEMES = ("public",)


def load_ape210k(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """The published parts, as far as their files are in the folder: `train.jsonl`, `valid.jsonl`, `test.jsonl`."""
    parts = {"train": "train", "validation": "valid", "test": "test"}
    files = {part: f"{name}.jsonl" for part, name in parts.items() if source.has(f"{name}.jsonl")}
    return {part: source.rows(file, ape_row) for part, file in (files or {"test": "test.jsonl"}).items()}


def ape_row(record: Record) -> Row:
    """A row of a record of Ape210k or of Ape-clean."""
    text, equation, answer = record.text("original_text"), record.text("equation"), record.text("ans")
    return record.row(record.text("id"), text, equation, answer, "zh")
