"""Tasks of GLUE from a user's folder or the Hub."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data_error import DataError
from .glue_sources import GLUE_SOURCES, HUB_ID, SCORES, GlueSource


if TYPE_CHECKING:
    from datasets import DatasetDict

TRAIN = "train"


def load_glue(
    task: str, data_dir: str | Path | None = None, validation_fraction: float = 0.1, seed: int = 0
) -> DatasetDict:
    """
    Load a task of GLUE. Its test split has no labels, so its public development split is `"test"`, and `"validation"`
    is a share of its training split, of each class alike, which `"train"` then lacks. MNLI has two of them, matched
    and mismatched, whose rows take turns.

    Args:
        task (`str`):
            `"rte"`, `"mrpc"`, `"stsb"`, `"sst2"`, `"cola"`, `"wnli"`, `"qqp"`, `"qnli"` or `"mnli"`. Of QQP's files a
            few lines are no rows; up to 1 in 1,000 are left out.
        data_dir (`str` or `Path`, *optional*): A GLUE folder (`RTE/train.tsv`, ...), or the task's own folder in it;
            the Hub (`nyu-mll/glue`) by default.
        validation_fraction (`float`, *optional*, defaults to 0.1): Share that is held out; at 0 no `"validation"`.
        seed (`int`, *optional*, defaults to 0): Seed of the choice.

    Returns:
        `DatasetDict`: rows have `id` (file and its line, from 1, or row on the Hub, from 0), `sentence1`,
        `sentence2` (`None` for tasks on one text) and `label`: the number of a class, or from 0 to 5 for `"stsb"`.

    Raises:
        ValueError: an unknown task, or a share that is none or leaves no rows.
        DataError: a missing file, wrong columns, an empty text or a wrong label (with file, line and field), or a task
            that cannot be had from the Hub.

    Example:

    ```python
    >>> data = hf_mwp.load_glue("rte", "glue_data")
    >>> {part: len(rows) for part, rows in data.items()}
    {'train': 2241, 'validation': 249, 'test': 277}
    ```
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    if task not in GLUE_SOURCES:
        raise ValueError(f"there is no task {task!r}: the tasks of GLUE are {', '.join(GLUE_SOURCES)}.")
    if not 0 <= validation_fraction < 1:
        raise ValueError(f"`validation_fraction` must be at least 0 and below 1, not {validation_fraction}.")
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
        # Rounded, a small share of few rows is none, and a large one all.
        if not all(parts.values()):
            left = f"{len(parts['train'])} to train on and {len(held_out)} to validate on"
            raise ValueError(
                f"`validation_fraction` {validation_fraction} of {len(train)} training rows leaves {left}: "
                "take another share, or 0 for no validation."
            )
    parts["test"] = [row for together in zip_longest(*rows.values()) for row in together if row is not None]
    label = ClassLabel(names=list(source.classes)) if source.classes else Value("float64")
    features = Features({**dict.fromkeys(("id", "sentence1", "sentence2"), Value("string")), "label": label})
    return DatasetDict({part: Dataset.from_list(each, features=features) for part, each in parts.items()})


def _find_folder(source: GlueSource, data_dir: Path) -> Path:
    for folder in (data_dir / source.folder, data_dir):
        if any((folder / f"{part}.tsv").is_file() for part in (TRAIN, *source.dev)):
            return folder
    raise DataError(
        f"there is neither {source.folder}/{TRAIN}.tsv nor {TRAIN}.tsv: `data_dir` is a GLUE folder with "
        f"{source.folder} in it, or that folder itself",
        data_dir,
    )


def _read_file(path: Path, source: GlueSource) -> list[dict[str, Any]]:
    """Read the rows of a tab-separated file, in which quotes have no meaning."""
    try:
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        fault = getattr(error, "strerror", error)
        raise DataError(f"cannot be read ({fault}): put it there, or give another `data_dir`", path) from error
    first = 0 if source.header else 1
    if len(lines) == first or not any(lines):  # an empty file is one empty line
        raise DataError("the file has no rows: download it again", path)
    header = source.header or tuple(lines[0].split("\t"))
    for column in (*source.columns, source.label):
        if column not in header:
            raise DataError(f"there is no such column, but {', '.join(header)}", path, 1, column)
    rows, broken = [], 0
    for number, line in enumerate(lines[first:], start=first + 1):
        try:
            rows.append(_read_row(line.split("\t"), header, path, number, source))
        except DataError:
            broken += 1
            if broken > source.broken * len(lines):
                raise
    return rows


def _read_row(
    cells: Sequence[str], header: Sequence[str], path: Path, number: int, source: GlueSource
) -> dict[str, Any]:
    if len(cells) != len(header):
        missing = header[len(cells)] if len(cells) < len(header) else None
        told = f"{len(cells)} columns and should be {len(header)} ({', '.join(header)}), separated by tabs"
        raise DataError(f"there are {told}, without quotes", path, number, missing)
    row = dict(zip(header, cells, strict=True))
    texts = [row[column] for column in source.columns]
    for column, text in zip(source.columns, texts, strict=True):
        if not text.strip():
            raise DataError("the text is empty", path, number, column)
    label = _label_of(row[source.label], source)
    if label is None:
        wanted = " or ".join(source.written) if source.classes else f"a number from {SCORES[0]:g} to {SCORES[1]:g}"
        raise DataError(f"the label must be {wanted}, not {row[source.label]!r}", path, number, source.label)
    return _row(f"{path.stem}-{number}", texts, label)


def _row(name: str, texts: list[str], label: float) -> dict[str, Any]:
    return {"id": name, "sentence1": texts[0], "sentence2": texts[1] if len(texts) > 1 else None, "label": label}


def _label_of(text: str, source: GlueSource) -> float | None:
    """Read a label from its text; `None` if it is not one."""
    if source.classes:
        return source.written.index(text) if text in source.written else None
    try:
        score = float(text)
    except ValueError:
        return None
    return score if SCORES[0] <= score <= SCORES[1] else None


def _read_hub(task: str, source: GlueSource) -> dict[str, list[dict[str, Any]]]:
    from datasets import load_dataset

    place = f"{HUB_ID}, {task}"
    try:
        loaded = load_dataset(HUB_ID, task)
    except (OSError, ValueError) as error:  # what is raised offline is a `ConnectionError`
        raise DataError(
            f"the Hub cannot be reached, or has no such data ({error}): connect, or give the folder that "
            f"{source.folder} is in (`data_dir`)",
            place,
        ) from error
    rows: dict[str, list[dict[str, Any]]] = {}
    for part in (TRAIN, *source.dev):
        name = part.replace("dev", "validation")
        if name not in loaded:
            raise DataError(f"there is no part {name}, but {', '.join(loaded)}", place)
        rows[part] = []
        for number, row in enumerate(loaded[name]):
            least, most = (0, len(source.classes) - 1) if source.classes else SCORES
            if not least <= row["label"] <= most:
                raise DataError(f"the label is {row['label']}, not from {least:g} to {most:g}", place, number, "label")
            texts = [row[column] for column in source.hub_columns]
            rows[part].append(_row(f"{part}-{number}", texts, row["label"]))
    return rows


def _held_out(labels: list[float], fraction: float, seed: int) -> set[int]:
    """Return indices of a share of the rows of each class, or of each score rounded to whole numbers."""
    groups = defaultdict(list)
    for index, label in enumerate(labels):
        groups[round(label)].append(index)
    chooser = random.Random(seed)
    return {
        index for key in sorted(groups) for index in chooser.sample(groups[key], round(fraction * len(groups[key])))
    }
