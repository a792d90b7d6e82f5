"""HMWP (Qin et al. 2020): 5,491 Chinese problems with equations and systems of equations."""

from .source import Record, Row, Source


SCHEMES = ("mwptoolkit",)


def load_hmwp(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """MWPToolkit's split. Ids repeat in this set, so its lists name lines (counted from 0) of `hmwp.jsonl`."""
    rows = {row["line"] - 1: row for row in source.rows("hmwp.jsonl", equation_row)}
    splits = {}
    for part, name in {"train": "train", "validation": "valid", "test": "test"}.items():
        lines = [int(line) for line in source.ids(f"split_{name}_lines.txt")]
        splits[part] = [rows[line] for line in lines if line in rows]
    return splits


def equation_row(record: Record) -> Row:
    """A row of a record of HMWP or CM17K, whose answers are lists; several answers are joined with `;`."""
    answers = record.values.get("ans")
    answer = ";".join(str(value) for value in answers) if isinstance(answers, list) else record.text("ans")
    text = record.text("raw_text", "original_text")
    return record.row(record.text("id"), text, record.text("equation"), answer, "zh")
