"""Functions and a collator that prepare dataset rows for training and evaluating solvers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from transformers.utils import logging

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.schema import as_text, without_nan
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
    dataset, skipped = _as_dataset(rows, "train_dataset"), []
    if "input_ids" in dataset.column_names:
        keep = [row for row, labels in enumerate(dataset["labels"]) if labels]
        skipped = [("", "it was encoded without labels")] * (len(dataset) - len(keep))
        prepared = dataset.select(keep) if skipped else dataset
    else:
        prepared = processor.prepare_dataset(dataset, skipped=skipped)
    rows = () if target_error is None else enumerate(prepared)
    errors = {place: error for place, row in rows if (error := target_error(row))}
    if errors:
        skipped += [(prepared[place].get("id", ""), error) for place, error in errors.items()]
        prepared = prepared.select([place for place in range(len(prepared)) if place not in errors])
    if skipped:
        heading = f"{len(skipped)} of {len(dataset)} training rows are left out:"
        logger.warning(show_controls("\n  ".join([heading, *_counted_reasons(skipped)])))
    if not len(prepared):
        raise ValueError("No equation in `train_dataset` can be encoded with the symbols of the processor.")
    return prepared


def _counted_reasons(skipped: list[tuple[str, str]]) -> list[str]:
    """Return a line for each kind of reason, most frequent first: number of rows, first row, and its reason."""
    kinds: dict[str, list[str]] = {}
    for name, reason in skipped:
        # Leave out details and advice. Reasons that differ only in quoted texts and numbers are of one kind.
        short = re.split(r"[;:] | \((?:at|token) ", reason)[0]
        kinds.setdefault(re.sub(r"'[^']*'|N?\d+", "", short), []).append(f"{name}: {short}" if name else short)
    return [f"{len(rows)}, e.g. {rows[0]}" for rows in sorted(kinds.values(), key=len, reverse=True)]


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
        rows = [{k: v for k, v in row.items() if k != ROW_INDEX} for row in features]
        batch = dict(self.collator(rows))
        batch[ROW_INDEX] = torch.tensor([feature[ROW_INDEX] for feature in features])
        labelled = [row for row, feature in enumerate(features) if feature.get("labels")]
        if 0 < len(labelled) < len(features):
            batch[LABELLED] = (torch.tensor(labelled), dict(self.collator([rows[row] for row in labelled])))
        return batch


def _as_dataset(rows: Any, name: str) -> Dataset:
    from datasets import Dataset

    if isinstance(rows, list):
        rows = [without_nan(row) for row in rows]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        # A column of a dataset has one type, but only some of these values may be numbers.
        for name in names.keys() & {"id", "equation", "answer"}:
            columns[name] = [as_text(value) if isinstance(value, int | float) else value for value in columns[name]]
        return Dataset.from_dict(columns)
    if not isinstance(rows, Dataset):
        raise TypeError(f"`{name}` must be a `datasets.Dataset` (one split) or a list, got {type(rows).__name__}.")
    return rows if rows.format["type"] in (None, "custom") else rows.with_format(None)
