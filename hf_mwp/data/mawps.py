"""MAWPS (Koncel-Kedziorski et al. 2016): English problems collected from older sets."""

from .folds import split_by_fold
from .source import Record, Row, Source


SCHEMES = ("five_fold", "single_five_fold")


def load_mawps(source: Source, scheme: str, fold: int | None) -> dict[str, list[Row]]:
    """Five folds: `five_fold` of all 2,373 problems, `single_five_fold` of the 1,987 with a single equation."""
    name = "mawps.jsonl" if scheme == "five_fold" else "mawps_single.jsonl"
    return split_by_fold(source.rows(name, _row), fold)


def _row(record: Record) -> Row:
    equations, answers = (record.values.get(name) for name in ("lEquations", "lSolutions"))
    equation = " ; ".join(map(str, equations)) if isinstance(equations, list) else record.text("lEquations")
    answer = ";".join(map(str, answers)) if isinstance(answers, list) else record.text("lSolutions")
    fold = record.values.get("fold")
    fold = -1 if fold is None else int(record.text("fold"))
    return record.row(record.text("iIndex"), record.text("sQuestion"), equation, answer, "en", fold)
