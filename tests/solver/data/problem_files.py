"""Files of problems for the tests of loading."""

import json
from pathlib import Path

from hf_mwp.solver.data import load_mwp_dataset


FIXTURES = Path(__file__).parents[2] / "fixtures"


def write_lines(path: Path, records: list[dict]) -> Path:
    """Write a JSONL file, and return its path. The folder is created if it does not exist."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def with_equation(texts: list[str], equation: str = "x=3", **fields) -> list[dict]:
    """Records of problems that have the same equation and the same other fields."""
    return [{"text": text, "equation": equation, **fields} for text in texts]


def load(name, data_dir=FIXTURES, **options):
    """A dataset of the fixtures, or of own files, and its report."""
    return load_mwp_dataset(name, data_dir, return_report=True, **options)


def ids_of(dataset) -> dict[str, list[str]]:
    return {split: rows["id"] for split, rows in dataset.items()}
