"""Batches of multiple choice models."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DataCollatorForMultipleChoice

from .training_rules import TrainingRules


LABELS = ("label", "labels")


class MultipleChoiceCollator(DataCollatorForMultipleChoice):
    """Collator that pads all choices of a batch to the same length. Rows need no labels. Raises `ValueError` if rows
    have different numbers of choices."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        counts = {len(example["input_ids"]) for example in examples}
        if len(counts) > 1:
            shown = ", ".join(map(str, sorted(counts)))
            raise ValueError(
                f"The rows of a batch have {shown} choices. Give all rows the same number of choices, or pass a "
                "`data_collator` that adds empty ones."
            )
        labels = []
        rows = []
        for example in examples:
            row = dict(example)
            for name in LABELS:
                if name in row:
                    labels.append(row.pop(name))
            # The collator needs labels; versions of Transformers return them under different names.
            rows.append({**row, "label": 0})
        batch = super().torch_call(rows)
        for name in LABELS:
            batch.pop(name, None)
        if labels:
            batch["labels"] = torch.tensor(labels)
        return batch


class MultipleChoiceTrainingRules(TrainingRules):
    """Pads the choices of each row. The length of a row is that of its longest choice."""

    def data_collator(self) -> MultipleChoiceCollator | None:
        if self.processing_class is None:
            return None
        return MultipleChoiceCollator(getattr(self.processing_class, "tokenizer", self.processing_class))

    def row_length(self, values: Sequence) -> int | None:
        return max(map(len, values))
