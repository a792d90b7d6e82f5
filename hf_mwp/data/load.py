"""Data sets of math word problems in one schema."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..expressions import ExpressionError
from ..problems import MathWordProblem, ProblemError
from . import ape210k, ape_clean, asdiv_a, cm17k, hmwp, math23k, mawps, svamp
from .errors import DataError
from .load_report import LoadReport, SplitReport
from .problem_file import FILE_ENDINGS, load_problem_file, load_problem_folder
from .source import Row, Source


if TYPE_CHECKING:
    from datasets import DatasetDict

# Name: (loader, split schemes with the usual one first, folder, where the files come from).
LOADERS = {
    "math23k": (math23k.load_math23k, math23k.SCHEMES, "math23k", "github.com/SCNU203/Math23k"),
    "ape210k": (ape210k.load_ape210k, ape210k.SCHEMES, "ape210k", "github.com/Chenny0808/ape210k"),
    "ape_clean": (ape_clean.load_ape_clean, ape_clean.SCHEMES, "ape_clean", "github.com/LZhenwen/MWP-BERT"),
    "hmwp": (hmwp.load_hmwp, hmwp.SCHEMES, "hmwp", "github.com/QinJinghui/SAU-Solver"),
    "cm17k": (cm17k.load_cm17k, cm17k.SCHEMES, "cm17k", "github.com/QinJinghui/NS-Solver"),
    "asdiv_a": (asdiv_a.load_asdiv_a, asdiv_a.SCHEMES, "asdiv", "github.com/chaochun/nlu-asdiv-dataset"),
    "mawps": (mawps.load_mawps, mawps.SCHEMES, "mawps", "github.com/LYH-YF/MWPToolkit"),
    "svamp": (svamp.load_svamp, svamp.SCHEMES, "svamp", "github.com/arkilpatel/SVAMP"),
}
COLUMNS = ("id", "text", "equation", "answer", "language", "dataset", "fold", "line", "file")
_SHIPPED = Path(__file__).parents[2] / "examples" / "data"


def load_mwp_dataset(
    name: str,
    data_dir: str | Path | None = None,
    split_scheme: str | None = None,
    fold: int | None = None,
    on_error: str = "raise",
    drop_overlap: bool = False,
    numerals: bool | None = None,
    validation_fraction: float = 0.0,
    return_report: bool = False,
) -> DatasetDict | tuple[DatasetDict, LoadReport]:
    """Loads a data set of math word problems.

    All sets have the columns `id`, `text`, `equation`, `answer`, `language`, `dataset` (strings, as in the source),
    `fold` (-1 when there is none), `line` and `file` (where the record stands). What follows from them is computed by
    [`problem_from_row`].

    A training problem is left out when its equation cannot be read or does not give its answer. A validation or test
    problem is kept, since accuracy is over all of them, unless it has no answer, or more than one: then it is left out
    of every part. The report counts both.

    Args:
        name (`str`):
            `"math23k"`, `"ape210k"`, `"ape_clean"`, `"hmwp"`, `"cm17k"`, `"asdiv_a"`, `"mawps"`, `"svamp"`; or a file
            that ends in `.jsonl` or `.csv` (also `.gz`), or a folder with `train`, `valid` and `test` files of that
            kind, with the fields that [`~hf_mwp.data.problem_file.load_problem_file`] names.
        data_dir (`str` or `Path`, *optional*):
            Folder with the set's files, under the names they are published with. By default `math23k` and `asdiv_a`
            are found in `examples/data` of a checkout of this project.
        split_scheme (`str`, *optional*):
            Named split, see the loaders; by default the usual one.
        fold (`int`, *optional*):
            Fold that is the test part, in schemes with folds; 0 by default.
        on_error (`str`, *optional*, defaults to `"raise"`):
            `"raise"` stops at a damaged record, `"skip"` counts it in the report.
        drop_overlap (`bool`, *optional*, defaults to `False`):
            Leave validation and test problems out whose masked text occurs in the training part.
        numerals (`bool`, *optional*):
            Whether number words are numbers; by default in English only.
        validation_fraction (`float`, *optional*, defaults to 0.0):
            Share of the training part that becomes the validation part where there is none; the choice depends on
            nothing but the rows.
        return_report (`bool`, *optional*, defaults to `False`):
            Return the [`LoadReport`] too. Its text is also the `description` of the parts' `info`.

    Raises:
        `DataError`: a file is missing or damaged, or there is no such data set.
        `ValueError`: an argument is out of range.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"`on_error` must be 'raise' or 'skip', got {on_error!r}")
    if not 0 <= validation_fraction < 1:
        raise ValueError(f"`validation_fraction` must be in [0, 1), got {validation_fraction}")
    name, source, scheme, splits = _read(str(name), data_dir, split_scheme, fold, on_error)
    if validation_fraction and "validation" not in splits and "train" in splits:
        splits = _split_off(splits, validation_fraction)
        scheme += f", {validation_fraction:g} of train as validation"
    report = LoadReport(name, scheme, overlap_dropped=drop_overlap)
    kept: dict[str, list[Row]] = {}
    seen: set[str] = set()
    for part in sorted(splits, key=("train", "validation", "test").index):
        kept[part] = _check(splits[part], part, report, seen, drop_overlap, numerals)
    for error in source.damaged:
        first = report.splits[next(iter(report.splits))]
        first.read += 1
        first.count(first.skipped, "the record is damaged", f"{error.file}, line {error.line}, {error.message}")
    dataset = _dataset(kept, name, report)
    return (dataset, report) if return_report else dataset


def problem_from_row(row: Mapping[str, Any], numerals: bool | None = None) -> MathWordProblem:
    """The problem of a row of [`load_mwp_dataset`]; only `text` must be there.

    Args:
        row (`Mapping`): Columns `text`, `equation`, `answer`, `id`, `language`.
        numerals (`bool`, *optional*): Whether number words are numbers; by default in English only.
    """
    return MathWordProblem(
        text=row["text"],
        equation=row.get("equation") or None,
        answer=row.get("answer") or None,
        id=str(row.get("id") or ""),
        language=row.get("language") or "zh",
        numerals=numerals,
    )


def _read(name, data_dir, scheme, fold, on_error):
    """The set's name, source, split scheme and rows."""
    if name not in LOADERS:
        path = Path(name) if data_dir is None else Path(data_dir) / name
        if path.name.endswith(FILE_ENDINGS):
            source = Source(path.parent, on_error)
            return path.name, source, "as in the file", load_problem_file(source, path.name)
        if path.is_dir():
            source = Source(path, on_error)
            return path.name, source, "as in the folder", load_problem_folder(source)
        raise DataError(
            f"{name!r} is no data set: name one of {', '.join(LOADERS)}, a file that ends in "
            f"{' or '.join(FILE_ENDINGS[:2])}, or a folder of such files"
        )
    load, schemes, folder, origin = LOADERS[name]
    scheme = schemes[0] if scheme is None else scheme
    if scheme not in schemes:
        raise ValueError(f"{name} has the split schemes {', '.join(schemes)}, not {scheme!r}")
    if fold is not None and "five_fold" not in scheme:
        raise ValueError(f"the split {scheme!r} of {name} has no folds, but `fold={fold}` was given")
    root = _SHIPPED / folder if data_dir is None else Path(data_dir)
    if not root.is_dir():
        raise DataError(
            f"the files of {name} are not there: get them from {origin} and name their folder as `data_dir`", root
        )
    source = Source(root, on_error)
    splits = load(source, scheme, fold)
    if "five_fold" in scheme:
        scheme += f", fold {0 if fold is None else fold}"
    return name, source, scheme, splits


def _split_off(splits: dict[str, list[Row]], fraction: float) -> dict[str, list[Row]]:
    """Moves a share of the training part to a validation part, the same one each time."""
    rows = splits["train"]
    chosen = set(random.Random(0).sample(range(len(rows)), round(fraction * len(rows))))
    train = [row for index, row in enumerate(rows) if index not in chosen]
    return splits | {"train": train, "validation": [rows[index] for index in sorted(chosen)]}


def _check(rows, part, report: LoadReport, seen: set[str], drop_overlap: bool, numerals) -> list[Row]:
    """Rows to keep of one part; `seen` collects the training part's masked texts."""
    counts = report.splits[part] = SplitReport(read=len(rows))
    kept = []
    for row in rows:
        problem = problem_from_row(row, numerals)
        place = f"{row['file']}, line {row['line']}, id {row['id']!r}"
        if ";" in row["answer"]:
            counts.count(counts.skipped, "more than one answer", place)
            continue
        if part != "train" and not row["answer"]:
            counts.count(counts.skipped, "no answer", place)
            continue
        reason = _unusable(problem)
        if reason is not None:
            counts.count(counts.skipped if part == "train" else counts.unusable, reason, place)
            if part == "train":
                continue
        if part == "train":
            seen.add(problem.masked_key)
        elif problem.masked_key in seen:
            counts.overlap += 1
            if drop_overlap:
                continue
        kept.append(row)
    counts.kept = len(kept)
    return kept


def _unusable(problem: MathWordProblem) -> str | None:
    """Why the equation cannot be learned from."""
    if problem.equation is None:
        return "no equation"
    try:
        problem.expression  # noqa: B018
    except ProblemError as error:
        return str(error)
    except ExpressionError as error:
        unknown = problem.equation.count("=") and (error.token or "")[:1].isalpha()
        return "an equation to be solved" if unknown or ";" in problem.equation else "the equation does not parse"
    if problem.answer is not None and not problem.agrees():
        return "the equation does not give the answer"
    return None


def _dataset(splits: dict[str, list[Row]], name: str, report: LoadReport) -> DatasetDict:
    from datasets import Dataset, DatasetDict, DatasetInfo, Features, Value

    types = {"fold": "int64", "line": "int64"}
    features = Features({column: Value(types.get(column, "string")) for column in COLUMNS})
    parts = {}
    for part, rows in splits.items():
        columns = {column: [row.get(column, name) for row in rows] for column in COLUMNS}
        info = DatasetInfo(description=str(report), features=features)
        parts[part] = Dataset.from_dict(columns, features=features, info=info)
    return DatasetDict(parts)
