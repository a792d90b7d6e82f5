"""Cross-validation folds."""

from .source import Row


def split_by_fold(rows: list[Row], fold: int | None) -> dict[str, list[Row]]:
    """One fold as the test part (the first by default), the others for training."""
    held_out = 0 if fold is None else fold
    rows = [row for row in rows if row["fold"] >= 0]
    folds = sorted({row["fold"] for row in rows})
    if held_out not in folds:
        raise ValueError(f"there is no fold {held_out}; the folds are {folds}")
    return {
        "train": [row for row in rows if row["fold"] != held_out],
        "test": [row for row in rows if row["fold"] == held_out],
    }
