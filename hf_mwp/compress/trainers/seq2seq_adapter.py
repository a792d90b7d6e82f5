"""Batches of sequence-to-sequence models."""

import copy
from typing import Any

from transformers import DataCollatorForSeq2Seq

from .model_adapter import ModelAdapter


class PairCollator(DataCollatorForSeq2Seq):
    """Collator that pads on the right, as positions count from the left. Without a target, all labels are -100."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        super().__init__(copy.copy(tokenizer), model)
        self.tokenizer.padding_side = "right"

    def __call__(self, features, return_tensors=None):
        missing = ["labels" in each and all(label == -100 for label in each["labels"]) for each in features]
        # mBART and PLBart need a token in each row of labels for the decoder's inputs.
        pairs = zip(features, missing, strict=True)
        rows = [{**row, "labels": row["input_ids"][:1]} if is_missing else row for row, is_missing in pairs]
        batch = super().__call__(rows, return_tensors)
        if any(missing):
            batch["labels"][missing] = -100
        return batch


class Seq2SeqAdapter(ModelAdapter):
    """Pads the labels of a sequence-to-sequence model. [`GenerationEvaluation`] evaluates the texts it generates."""

    def data_collator(self) -> PairCollator | None:
        return None if self.processing_class is None else PairCollator(self.processing_class, self.model)
