"""Functions and a collator that prepare dataset rows for training and evaluating solvers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from transformers.utils import logging

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.record import as_text
from hf_mwp.solver.data.schema import without_nan
from hf_mwp.utils.control_characters import show_controls


if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.get_logger(__name__)

ROW_INDEX = "row_index"
LABELLED = "labelled"


def prepare_training_rows(
    rows: Any, processor: MwpProcessor, target_error: Callable[[Mapping[str, Any]], str | None] | None = None
) -> Dataset:
    """Encode training rows (`datasets.Dataset` or `list[dict]`) unless they are encoded already. Rows without a usable
    equation, or with a target that the solver cannot learn ([`~Solver.target_error`]), are left out with a warning."""
    dataset = _as_dataset(rows, "train_dataset")
    skipped: list[tuple[str, str]] = []  # id and reason of each row that is left out
    if "input_ids" in dataset.column_names:
        labelled = [index for index, labels in enumerate(dataset["labels"]) if labels]
        skipped += [("", "it was encoded without labels")] * (len(dataset) - len(labelled))
        prepared = dataset.select(labelled) if skipped else dataset
    else:
        prepared = processor.prepare_dataset(dataset, skipped=skipped)
    if target_error is not None:
        prepared = _without_errors(prepared, target_error, skipped)
    if skipped:
        heading = f"{len(skipped)} of {len(dataset)} training rows are left out:"
        logger.warning(show_controls("\n  ".join([heading, *_counted_reasons(skipped)])))
    if not len(prepared):
        raise ValueError("No equation in `train_dataset` can be encoded with the symbols of the processor.")
    return prepared


def _without_errors(
    dataset: Dataset, target_error: Callable[[Mapping[str, Any]], str | None], skipped: list[tuple[str, str]]
) -> Dataset:
    """Return the rows whose target has no error, and append the other rows to `skipped`."""
    learnable = []
    for index, row in enumerate(dataset):
        error = target_error(row)
        if error:
            skipped.append((row.get("id", ""), error))
        else:
            learnable.append(index)
    return dataset if len(learnable) == len(dataset) else dataset.select(learnable)


def _counted_reasons(skipped: list[tuple[str, str]]) -> list[str]:
    """Return a line for each kind of reason, most frequent first: number of rows, first row, and its reason."""
    rows_by_reason: dict[str, list[str]] = {}
    for name, reason in skipped:
        # Leave out details and advice. Reasons that differ only in quoted texts and numbers are of one kind.
        short = re.split(r"[;:] | \((?:at|token) ", reason)[0]
        general = re.sub(r"'[^']*'|N?\d+", "", short)
        line = f"{name}: {short}" if name else short
        rows_by_reason.setdefault(general, []).append(line)
    by_frequency = sorted(rows_by_reason.values(), key=len, reverse=True)
    return [f"{len(lines)}, e.g. {lines[0]}" for lines in by_frequency]


def prepare_evaluation_rows(rows: Any, processor: MwpProcessor) -> Dataset:
    """Encode and number evaluation rows, which need the raw columns. Rows without a usable equation are kept."""
    dataset = _as_dataset(rows, "eval_dataset")
    if "text" not in dataset.column_names:
        raise ValueError(f"Evaluation needs the raw column `text`, but the rows have only {dataset.column_names}.")
    if "input_ids" not in dataset.column_names:
        dataset = processor.prepare_dataset(dataset)
    if ROW_INDEX in dataset.column_names:
        dataset = dataset.remove_columns(ROW_INDEX)
    return dataset.add_column(ROW_INDEX, list(range(len(dataset))))


class EvaluationCollator:
    """Collator that adds row numbers and, if only some rows have labels, their positions and a batch of them."""

    def __init__(self, collator: Any) -> None:
        self.collator = collator

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        row_numbers = []
        rows = []
        for feature in features:
            row = dict(feature)
            row_numbers.append(row.pop(ROW_INDEX))
            rows.append(row)
        batch = dict(self.collator(rows))
        batch[ROW_INDEX] = torch.tensor(row_numbers)
        positions = [position for position, row in enumerate(rows) if row.get("labels")]
        if 0 < len(positions) < len(rows):
            labelled_batch = self.collator([rows[position] for position in positions])
            batch[LABELLED] = (torch.tensor(positions), dict(labelled_batch))
        return batch


def _as_dataset(rows: Any, name: str) -> Dataset:
    from datasets import Dataset

    if isinstance(rows, list):
        rows = [without_nan(row) for row in rows]
        column_names = list(dict.fromkeys(chain.from_iterable(rows)))
        return Dataset.from_dict({column_name: _column(rows, column_name) for column_name in column_names})
    if not isinstance(rows, Dataset):
        raise TypeError(f"`{name}` must be a `datasets.Dataset` (one split) or a list, got {type(rows).__name__}.")
    if rows.format["type"] in (None, "custom"):
        return rows
    return rows.with_format(None)


def _column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    values = [row.get(name) for row in rows]
    if name not in ("id", "equation", "answer"):
        return values
    # A column of a dataset has one type, but only some of these values may be numbers.
    for index, value in enumerate(values):
        if isinstance(value, int | float):
            values[index] = as_text(value)
    return values
