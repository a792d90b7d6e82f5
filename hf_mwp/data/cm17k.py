"""CM17K (Qin et al. 2021): Chinese arithmetic problems, equations and systems of equations."""

from .hmwp import equation_row
from .source import Row, Source


SCHEMES = ("public",)


def load_cm17k(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """The published parts, as far as their files are in the folder: `train.jsonl`, `valid.jsonl`, `test.jsonl`."""
    parts = {"train": "train", "validation": "valid", "test": "test"}
    files = {part: f"{name}.jsonl" for part, name in parts.items() if source.has(f"{name}.jsonl")}
    return {part: source.rows(file, equation_row) for part, file in (files or {"validation": "valid.jsonl"}).items()}
