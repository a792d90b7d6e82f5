"""Ape-clean (Liang et al. 2022): the problems of Ape210k that MWP-BERT's authors list as solvable."""

from .ape210k import ape_row
from .source import Row, Source


SCHEMES = ("listed", "all")


def load_ape_clean(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """Test problems, and training problems when Ape210k's `train.jsonl` lies in the folder too.

    Schemes: `listed`, only the ids of `ape_kg_test_id.txt` and `ape_simple_id.txt`; `all`, the whole test file.
    The lists are used as published: they cannot be derived from the problems.
    """
    splits = {"test": source.rows("test.jsonl", ape_row)}
    if scheme == "listed":
        listed = set(source.ids("ape_kg_test_id.txt"))
        splits["test"] = [row for row in splits["test"] if row["id"] in listed]
    if source.has("train.jsonl"):
        listed = set(source.ids("ape_simple_id.txt"))
        splits["train"] = [row for row in source.rows("train.jsonl", ape_row) if row["id"] in listed]
    return splits
