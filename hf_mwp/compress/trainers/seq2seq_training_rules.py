"""Batches of sequence-to-sequence models."""

import copy
from typing import Any

from transformers import DataCollatorForSeq2Seq

from .training_rules import TrainingRules


class PairCollator(DataCollatorForSeq2Seq):
    """Collator that pads on the right, as positions count from the left. Without a target, all labels are -100."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        super().__init__(copy.copy(tokenizer), model)
        self.tokenizer.padding_side = "right"

    def __call__(self, features, return_tensors=None):
        rows = []
        without_target = []
        for index, row in enumerate(features):
            if "labels" in row and all(label == -100 for label in row["labels"]):
                # mBART and PLBart need a token in each row of labels for the decoder's inputs.
                row = {**row, "labels": row["input_ids"][:1]}
                without_target.append(index)
            rows.append(row)
        batch = super().__call__(rows, return_tensors)
        if without_target:
            batch["labels"][without_target] = -100
        return batch


class Seq2SeqTrainingRules(TrainingRules):
    """Pads the labels of a sequence-to-sequence model. [`GenerationEvaluation`] evaluates the texts it generates."""

    def data_collator(self) -> PairCollator | None:
        return None if self.processing_class is None else PairCollator(self.processing_class, self.model)
