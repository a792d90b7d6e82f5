"""Batches of sequence-to-sequence models."""

from transformers import DataCollatorForSeq2Seq

from ..model_adapter import ModelAdapter


class Seq2SeqAdapter(ModelAdapter):
    """Pads the labels of a sequence-to-sequence model. [`GenerationEvaluation`] evaluates the texts it generates."""

    def data_collator(self) -> DataCollatorForSeq2Seq | None:
        return None if self.processing_class is None else DataCollatorForSeq2Seq(self.processing_class)
