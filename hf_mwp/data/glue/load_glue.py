"""Tasks of GLUE from a user's folder or the Hub."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...options.checks import check_share
from ..data_error import DataError
from .glue_sources import GLUE_SOURCES, HUB_ID, SCORES, GlueSource


if TYPE_CHECKING:
    from datasets import DatasetDict

TRAIN = "train"


def load_glue(
    task: str, data_dir: str | Path | None = None, validation_fraction: float = 0.1, seed: int = 0
) -> DatasetDict:
    """
    Load a task of GLUE. The public development split becomes `"test"`, because the test split has no labels;
    `"validation"` is a share of each class of the training split. Rows of MNLI's two development splits, matched and
    mismatched, alternate.

    Args:
        task (`str`):
            `"rte"`, `"mrpc"`, `"stsb"`, `"sst2"`, `"cola"`, `"wnli"`, `"qqp"`, `"qnli"` or `"mnli"`. Up to 1 in 1,000
            lines of QQP's files may be damaged; they are left out.
        data_dir (`str` or `Path`, *optional*): A GLUE folder (`RTE/train.tsv`, ...), or the task's own folder in it;
            the Hub (`nyu-mll/glue`) by default.
        validation_fraction (`float`, *optional*, defaults to 0.1): Share of `"validation"`; 0 for no such split.
        seed (`int`, *optional*, defaults to 0): Seed of the choice.

    Returns:
        `DatasetDict`: rows have `id` (file and its line, from 1, or row on the Hub, from 0), `sentence1`,
        `sentence2` (`None` for tasks on one text) and `label`: the number of a class, or from 0 to 5 for `"stsb"`.

    Raises:
        ValueError: the task is unknown, or `validation_fraction` leaves a split without rows.
        DataError: a missing file, wrong columns, an empty text or a wrong label (with file, line and field), or no
            connection to the Hub.

    Example:

    ```python
    >>> data = hf_mwp.load_glue("rte", "glue_data")
    >>> {part: len(rows) for part, rows in data.items()}
    {'train': 2241, 'validation': 249, 'test': 277}
    ```
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    if task not in GLUE_SOURCES:
        raise ValueError(f"Unknown GLUE task {task!r}. Choose one of {', '.join(GLUE_SOURCES)}.")
    check_share({"validation_fraction": validation_fraction}, "validation_fraction")
    source = GLUE_SOURCES[task]
    if data_dir is None:
        rows = _read_hub(task, source)
    else:
        folder = _find_folder(source, Path(data_dir))
        rows = {part: _read_file(folder / f"{part}.tsv", source) for part in (TRAIN, *source.dev)}
    train = rows.pop(TRAIN)
    held_out = _held_out([row["label"] for row in train], validation_fraction, seed)
    parts = {"train": [row for index, row in enumerate(train) if index not in held_out]}
    if validation_fraction:
        parts["validation"] = [train[index] for index in sorted(held_out)]
        # A small share of few rows rounds to none, a large one to all.
        if not all(parts.values()):
            raise ValueError(
                f"`validation_fraction` {validation_fraction} of {len(train)} training rows leaves "
                f"{len(parts['train'])} to train on and {len(held_out)} to validate on. Choose another share, or 0."
            )
    parts["test"] = [row for together in zip_longest(*rows.values()) for row in together if row is not None]
    label = ClassLabel(names=list(source.classes)) if source.classes else Value("float64")
    features = Features({**dict.fromkeys(("id", "sentence1", "sentence2"), Value("string")), "label": label})
    return DatasetDict({part: Dataset.from_list(each, features=features) for part, each in parts.items()})


def _find_folder(source: GlueSource, data_dir: Path) -> Path:
    for folder in (data_dir / source.folder, data_dir):
        if any((folder / f"{part}.tsv").is_file() for part in (TRAIN, *source.dev)):
            return folder
    fault = f"there is neither {source.folder}/{TRAIN}.tsv nor {TRAIN}.tsv"
    raise DataError(f"{fault}. `data_dir` must be a GLUE folder, or the task's own folder in it", data_dir)


def _read_file(path: Path, source: GlueSource) -> list[dict[str, Any]]:
    """Read the rows of a tab-separated file, in which quotes have no meaning."""
    try:
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        fault = getattr(error, "strerror", error)
        raise DataError(f"the file cannot be read ({fault}). Download it, or give another `data_dir`", path) from error
    first = 0 if source.header else 1
    if len(lines) == first or not any(lines):  # an empty file is one empty line
        raise DataError("the file has no rows: download it again", path)
    header = source.header or tuple(lines[0].split("\t"))
    for column in (*source.columns, source.label):
        if column not in header:
            raise DataError(f"there is no such column, but {', '.join(header)}", path, 1, column)
    rows, broken = [], 0
    for number, line in enumerate(lines[first:], start=first + 1):
        cells = line.split("\t")
        try:
            if len(cells) != len(header):
                missing = header[len(cells)] if len(cells) < len(header) else None
                fault = f"there are {len(cells)} columns instead of {len(header)} ({', '.join(header)})"
                raise DataError(fault, path, number, missing)
            row, name = dict(zip(header, cells, strict=True)), f"{path.stem}-{number}"
            rows.append(_make_row(row, source.columns, source.label, source, name, path, number))
        except DataError:
            broken += 1
            if broken > source.broken * len(lines):
                raise
    return rows


def _make_row(
    row: Mapping[str, Any],
    columns: Sequence[str],
    label_column: str,
    source: GlueSource,
    name: str,
    place: str | Path,
    line: int,
) -> dict[str, Any]:
    """Make a row of one schema; `DataError` for an empty text or a wrong label."""
    for column in columns:
        if not row[column].strip():
            raise DataError("the text is empty", place, line, column)
    label = _label_of(row[label_column], source)
    if label is None:
        wanted = " or ".join(source.written) if source.classes else f"a number from {SCORES[0]:g} to {SCORES[1]:g}"
        raise DataError(f"the label must be {wanted}, not {row[label_column]!r}", place, line, label_column)
    texts = [*(row[column] for column in columns), None]
    return {"id": name, "sentence1": texts[0], "sentence2": texts[1], "label": label}


def _label_of(label: str | float, source: GlueSource) -> float | None:
    """Return the number of a class (a word in files, a number on the Hub) or a score; `None` for anything else."""
    if source.classes:
        known = source.written if isinstance(label, str) else range(len(source.classes))
        return known.index(label) if label in known else None
    try:
        score = float(label)
    except ValueError:
        return None
    return score if SCORES[0] <= score <= SCORES[1] else None


def _read_hub(task: str, source: GlueSource) -> dict[str, list[dict[str, Any]]]:
    from datasets import load_dataset

    place = f"{HUB_ID}, {task}"
    try:
        loaded = load_dataset(HUB_ID, task)
    except (OSError, ValueError) as error:  # `ConnectionError` offline
        fault = f"the Hub cannot be reached, or has no such data ({error})"
        raise DataError(f"{fault}. Pass the folder of {source.folder} as `data_dir`", place) from error
    rows: dict[str, list[dict[str, Any]]] = {}
    for part in (TRAIN, *source.dev):
        name = part.replace("dev", "validation")
        if name not in loaded:
            raise DataError(f"there is no split {name}, but {', '.join(loaded)}", place)
        rows[part] = [
            _make_row(row, source.hub_columns, "label", source, f"{part}-{number}", place, number)
            for number, row in enumerate(loaded[name])
        ]
    return rows


def _held_out(labels: list[float], fraction: float, seed: int) -> set[int]:
    """Return the indices of a share of the rows of each class, or of each score rounded to whole numbers."""
    groups = defaultdict(list)
    for index, label in enumerate(labels):
        groups[round(label)].append(index)
    chooser = random.Random(seed)
    return {
        index for key in sorted(groups) for index in chooser.sample(groups[key], round(fraction * len(groups[key])))
    }
