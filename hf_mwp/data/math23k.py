"""Math23k (Wang, Liu and Shi 2017): 23,162 Chinese problems with one unknown."""

from .folds import split_by_fold
from .source import Record, Row, Source


SCHEMES = ("public", "train_test", "five_fold", "mwptoolkit")


def load_math23k(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """Splits of Math23k.

    Schemes: `public`, 21,162 / 1,000 / 1,000 (the test part is the usual one); `train_test`, the same test part with
    all others for training; `five_fold`, the five folds of 23,160 problems that ATHENA's authors publish;
    `mwptoolkit`, that library's 18,529 / 2,316 / 2,317, whose test part is another one.
    """
    train, validation, test = (source.rows(f"{name}.jsonl", _row) for name in ("train", "valid", "test"))
    if scheme == "public":
        return {"train": train, "validation": validation, "test": test}
    if scheme == "train_test":
        return {"train": train + validation, "test": test}
    rows = train + validation + test
    if scheme == "mwptoolkit":
        parts = {name: set(source.ids(f"mwptoolkit_split_{name}_ids.txt")) for name in ("valid", "test")}
        return {
            "train": [row for row in rows if row["id"] not in parts["valid"] | parts["test"]],
            "validation": [row for row in rows if row["id"] in parts["valid"]],
            "test": [row for row in rows if row["id"] in parts["test"]],
        }
    folds = dict(line.split("\t") for line in source.ids("five_fold_ids.tsv")[1:])
    rows = [row | {"fold": int(folds[row["id"]])} for row in rows if row["id"] in folds]
    return split_by_fold(rows, fold)


def _row(record: Record) -> Row:
    text, equation, answer = record.text("original_text"), record.text("equation"), record.text("ans")
    return record.row(record.text("id"), text, equation, answer, "zh")
