"""Rows, batches and perplexity of causal language models."""

import math
from typing import Any

from torch import Tensor
from transformers.trainer_utils import EvalLoopOutput

from hf_mwp.compress.models.architecture import count_positions

from .causal_rows import CausalCollator, tokenize_causal_rows
from .training_rules import TrainingRules


class CausalTrainingRules(TrainingRules):
    """Tokenizes the texts, prompts and messages of a causal language model ([`tokenize_causal_rows`]), pads its
    batches and reports the perplexity of evaluations."""

    def training_rows(self, rows: Any) -> Any:
        return self._tokenized(rows, self.args.packing)

    def evaluation_rows(self, rows: Any) -> Any:
        return self._tokenized(rows, packing=False)

    def _tokenized(self, rows: Any, packing: bool) -> Any:
        if self.processing_class is None:
            return rows
        return tokenize_causal_rows(
            rows,
            self.processing_class,
            max_length=self.args.max_length,
            completion_only_loss=self.args.completion_only_loss,
            packing=packing,
            max_positions=count_positions(self.model.config),
        )

    def data_collator(self) -> CausalCollator | None:
        if self.processing_class is None:
            return None
        # Flash attention ignores the documents of batches with several packed rows.
        is_flash = str(self.model.config._attn_implementation).startswith("flash")
        return CausalCollator(self.processing_class, padding_free=self.args.packing and is_flash)

    def count_labels(self, labels: Tensor) -> Tensor:
        # The first token of a row is not predicted.
        return (labels[:, 1:] != -100).sum()

    def metric_names(self, rows: Any) -> set[str]:
        return {"loss", "perplexity"}

    def add_metrics(self, output: EvalLoopOutput, rows: Any, prefix: str) -> EvalLoopOutput:
        """Add the perplexity per predicted token, `exp(loss)`."""
        loss = output.metrics.get(f"{prefix}_loss")
        if loss is not None:
            output.metrics[f"{prefix}_perplexity"] = math.exp(min(loss, 700.0))
        return output
