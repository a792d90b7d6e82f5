"""GLUE tasks: their files, columns and classes, and a loader from a folder or the Hub."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.file_contents import RecordReader
from hf_mwp.solver.data.record import Record, Rows
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_share


if TYPE_CHECKING:
    from datasets import DatasetDict

TRAIN = "train"
HUB_ID = "nyu-mll/glue"
SCORES = (0.0, 5.0)  # Range of the scores of STS-B.


@dataclass(frozen=True)
class GlueSource:
    """
    Files, columns and classes of a GLUE task. A new task ([`add_glue_task`]) has the files `train.tsv` and `dev.tsv`
    in its `folder`, tab-separated and with a header.

    Args:
        hub_columns (`tuple[str, ...]`): Columns of the one or two texts.
        classes (`tuple[str, ...]`): Names of the classes in the order of their numbers; empty for a regression.
        folder (`str`): Name of the task's folder in `data_dir`.
        columns (`tuple[str, ...]`, *optional*): Columns of the texts in the files, if they differ from `hub_columns`.
        label (`str`, *optional*, defaults to `"label"`): Column of the label in the files.
        written (`tuple[str, ...]`, *optional*, defaults to `("0", "1")`): Names of the classes in the files.
        header (`tuple[str, ...]`, *optional*): All columns, for files without a header.
        dev (`tuple[str, ...]`, *optional*, defaults to `("dev",)`): Names of the files of the development splits.
        broken (`float`, *optional*, defaults to 0.0): Maximum share of damaged lines, which are left out.
    """

    hub_columns: tuple[str, ...]  # Columns of the one or two texts in the dataset on the Hub.
    classes: tuple[str, ...]  # Names of the classes in the order of their numbers; empty for a regression.
    folder: str  # Name of the task's folder in a GLUE folder.
    columns: tuple[str, ...] = ()  # Columns of the texts in the files, if they differ from `hub_columns`.
    label: str = "label"  # Column of the label in the files.
    written: tuple[str, ...] = ("0", "1")  # Names of the classes in the files.
    header: tuple[str, ...] = ()  # All columns, for files without a header.
    dev: tuple[str, ...] = ("dev",)  # Files of the development splits. On the Hub, `dev` is `validation`.
    broken: float = 0.0  # Maximum share of damaged lines in the files. Damaged lines are left out.


SENTENCE = ("sentence",)
PAIR = ("sentence1", "sentence2")
QUESTIONS = ("question1", "question2")
PREMISE = ("premise", "hypothesis")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("entailment", "neutral", "contradiction")

GLUE_SOURCES: dict[str, GlueSource] = {
    "rte": GlueSource(PAIR, ENTAILMENT, "RTE", written=ENTAILMENT),
    "mrpc": GlueSource(PAIR, ("not_equivalent", "equivalent"), "MRPC", ("#1 String", "#2 String"), "Quality"),
    "stsb": GlueSource(PAIR, (), "STS-B", label="score"),
    "sst2": GlueSource(SENTENCE, ("negative", "positive"), "SST-2"),
    "cola": GlueSource(
        SENTENCE, ("unacceptable", "acceptable"), "CoLA", header=("source", "label", "mark", "sentence")
    ),
    "wnli": GlueSource(PAIR, ENTAILMENT[::-1], "WNLI"),
    # About twenty of the 404,301 lines are damaged by tabs or line ends in the texts.
    "qqp": GlueSource(QUESTIONS, ("not_duplicate", "duplicate"), "QQP", label="is_duplicate", broken=1e-3),
    "qnli": GlueSource(("question", "sentence"), ENTAILMENT, "QNLI", written=ENTAILMENT),
    "mnli": GlueSource(
        PREMISE, INFERENCE, "MNLI", PAIR, "gold_label", INFERENCE, dev=("dev_matched", "dev_mismatched")
    ),
}


@checked
def load_glue(
    task: str, data_dir: str | Path | None = None, validation_fraction: float = 0.1, seed: int = 0
) -> DatasetDict:
    """Load a GLUE task. The public development split becomes `"test"`, because the test split has no labels.
    `"validation"` is a share of each class of the training split. For MNLI, rows of the two development splits
    (matched and mismatched) alternate in `"test"`.

    Args:
        task (`str`): `"rte"`, `"mrpc"`, `"stsb"`, `"sst2"`, `"cola"`, `"wnli"`, `"qqp"`, `"qnli"` or `"mnli"`.
        data_dir (`str` or `Path`, *optional*): A GLUE folder (`RTE/train.tsv`, ...), or the folder of the task in it.
            By default the task is loaded from the Hub (`nyu-mll/glue`).
        validation_fraction (`float`, *optional*, defaults to 0.1): Share of the training split that becomes
            `"validation"`. With 0, there is no validation split.
        seed (`int`, *optional*, defaults to 0): Seed for the choice of the validation rows.

    Returns:
        `DatasetDict`: rows with the columns `id` (file and 1-based line, or 0-based row on the Hub), `sentence1`,
        `sentence2` (`None` for tasks with a single text) and `label` (number of the class, or a score from 0 to 5 for
        `"stsb"`).

    Raises:
        ValueError: The task is unknown, or `validation_fraction` leaves a split without rows.
        DataError: A file is missing, columns are wrong, a text is empty or a label is wrong (with file, line and
            field), or the Hub cannot be reached.

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
        folder = find_glue_folder(task, data_dir)
        rows = {name: _read_file(folder, name, source) for name in (TRAIN, *source.dev)}
    train = rows.pop(TRAIN)
    held_out = _held_out([row["label"] for row in train], validation_fraction, seed)
    splits = {"train": [row for index, row in enumerate(train) if index not in held_out]}
    if validation_fraction:
        splits["validation"] = [train[index] for index in sorted(held_out)]
        # A small share of few rows may round to no row, a large share to all rows.
        if not splits["train"] or not splits["validation"]:
            raise ValueError(
                f"`validation_fraction` {validation_fraction} of {len(train)} training rows leaves "
                f"{len(splits['train'])} to train on and {len(held_out)} to validate on. Set a different share, or 0."
            )
    # Rows of the development splits alternate.
    alternating = chain.from_iterable(zip_longest(*rows.values()))
    splits["test"] = [row for row in alternating if row is not None]
    label = ClassLabel(names=list(source.classes)) if source.classes else Value("float64")
    text = Value("string")
    features = Features({"id": text, "sentence1": text, "sentence2": text, "label": label})
    datasets = DatasetDict()
    for split, split_rows in splits.items():
        datasets[split] = Dataset.from_list(split_rows, features=features)
    return datasets


def find_glue_folder(task: str, data_dir: str | Path) -> Path:
    """Return the folder with the files of a GLUE task. Raises `DataError` if there is none."""
    source = GLUE_SOURCES[task]
    for folder in (Path(data_dir) / source.folder, Path(data_dir)):
        if any((folder / f"{name}.tsv").is_file() for name in (TRAIN, *source.dev)):
            return folder
    fault = f"neither {source.folder}/{TRAIN}.tsv nor {TRAIN}.tsv exists"
    raise DataError(f"{fault}. `data_dir` must be a GLUE folder, or the folder of the task in it", data_dir)


def _read_file(folder: Path, name: str, source: GlueSource) -> Rows:
    reader = RecordReader(folder, "skip", "Download it, or change `data_dir`.")
    columns = source.columns or source.hub_columns

    def make_row(record: Record) -> dict[str, Any]:
        return _make_row(record, f"{name}-{record.line}", source, columns, source.label)

    rows = reader.rows(make_row, f"{name}.tsv", header=source.header)
    max_damaged = int(source.broken * (len(rows) + len(reader.damaged)))
    if len(reader.damaged) > max_damaged:
        raise reader.damaged[max_damaged]
    if not rows:
        raise DataError("the file has no rows. Download it again", folder / f"{name}.tsv")
    return rows


def _make_row(
    record: Record, name: str, source: GlueSource, columns: Sequence[str], label_column: str
) -> dict[str, Any]:
    """Create a row with the columns of [`load_glue`]. Raises `DataError` for an empty text or a wrong label."""
    fields = record.fields
    for column in (*columns, label_column):
        if column not in fields:
            raise DataError(f"the column is missing. The columns are {', '.join(fields)}", record.file, 1, column)
    for column in columns:
        if not (fields[column] or "").strip():
            record.fail("the text is empty", column)
    label = _label_of(fields[label_column], source)
    if label is None:
        labels = f"a number from {SCORES[0]:g} to {SCORES[1]:g}"
        if source.classes:
            labels = " or ".join(source.written)
        record.fail(f"the label must be {labels}, not {fields[label_column]!r}", label_column)
    first, *second = map(record.text, columns)
    return {"id": name, "sentence1": first, "sentence2": second[0] if second else None, "label": label}


def _label_of(label: str | float, source: GlueSource) -> float | None:
    """Return the number of a class (a word in files, a number on the Hub) or a score, or `None` for a wrong label."""
    if source.classes:
        labels = source.written if isinstance(label, str) else range(len(source.classes))
        return labels.index(label) if label in labels else None
    try:
        score = float(label)
    except (TypeError, ValueError):
        return None
    return score if SCORES[0] <= score <= SCORES[1] else None


def _read_hub(task: str, source: GlueSource) -> dict[str, Rows]:
    from datasets import load_dataset

    dataset = f"{HUB_ID}, {task}"
    try:
        loaded = load_dataset(HUB_ID, task)
    except (OSError, ValueError) as error:  # `ConnectionError` if there is no connection.
        fault = f"the Hub cannot be reached, or does not have this dataset ({error})"
        raise DataError(f"{fault}. Download {source.folder}, and pass the folder as `data_dir`", dataset) from error
    rows: dict[str, Rows] = {}
    for name in (TRAIN, *source.dev):
        split = name.replace("dev", "validation")
        if split not in loaded:
            raise DataError(f"the dataset has no split {split}. The splits are {', '.join(loaded)}", dataset)
        rows[name] = []
        for number, fields in enumerate(loaded[split]):
            record = Record(fields, dataset, number)
            rows[name].append(_make_row(record, f"{name}-{number}", source, source.hub_columns, "label"))
    return rows


def _held_out(labels: list[float], fraction: float, seed: int) -> set[int]:
    """Return the indices of a random share of the rows of each class (or of each score, rounded to an integer)."""
    indices_of_class = defaultdict(list)
    for index, label in enumerate(labels):
        indices_of_class[round(label)].append(index)
    rng = random.Random(seed)
    held_out: set[int] = set()
    for _, indices in sorted(indices_of_class.items()):
        held_out.update(rng.sample(indices, round(fraction * len(indices))))
    return held_out
