"""Batches of multiple choice models."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers import DataCollatorForMultipleChoice

from .training_rules import TrainingRules


LABELS = ("label", "labels")


class MultipleChoiceCollator(DataCollatorForMultipleChoice):
    """Collator that pads all choices of a batch to the same length. Rows need no labels."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        if any(name in examples[0] for name in LABELS):
            return super().torch_call(examples)
        batch = super().torch_call([{**example, "labels": -100} for example in examples])
        del batch["labels"]
        return batch


class MultipleChoiceTrainingRules(TrainingRules):
    """Pads the choices of each row. The length of a row is that of its longest choice."""

    def data_collator(self) -> MultipleChoiceCollator | None:
        if self.processing_class is None:
            return None
        return MultipleChoiceCollator(getattr(self.processing_class, "tokenizer", self.processing_class))

    def row_length(self, values: Sequence) -> int | None:
        return max(map(len, values))
