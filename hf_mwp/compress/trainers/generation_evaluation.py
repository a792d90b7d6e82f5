"""Mixin that evaluates the texts which sequence-to-sequence models generate."""

from collections.abc import Callable
from typing import Any

from torch import nn
from transformers import DataCollatorForSeq2Seq

from hf_mwp.compress.metrics.text_generation import text_report
from hf_mwp.compress.models.model_kind import kind_of

from .argument_order import in_trainer_order
from .generate_texts import decode_texts, searching, within_positions


class GenerationEvaluation:
    """
    Mixin for trainers that derive from `Seq2SeqTrainer`, listed before them in the bases. With
    `predict_with_generate`, evaluations generate texts and report text metrics; the first metric chooses the best
    checkpoint unless `metric_for_best_model` is set.

    Args:
        model (`PreTrainedModel`): The model.
        processing_class (tokenizer, *optional*): Decodes texts; required unless `compute_metrics` is given.
        compute_metrics (`Callable`, *optional*): As in `Trainer`, on token ids; replaces `text_metrics`.
        text_metrics (`Callable`, *optional*):
            Function of two lists, the generated and the reference texts, that returns a `dict` of metrics (higher is
            better); [`text_report`] (BLEU and chrF) by default.
        kwargs: As in the trainer. `DataCollatorForSeq2Seq` is the default collator.
    """

    @in_trainer_order
    def __init__(
        self,
        model: nn.Module | None = None,
        *,
        args: Any = None,
        processing_class: Any = None,
        compute_metrics: Callable | None = None,
        text_metrics: Callable[[list[str], list[str]], dict[str, float]] = text_report,
        **kwargs,
    ) -> None:
        args = self._checked(model, args, kwargs)
        if not kind_of(model).has_decoder or not hasattr(model, "generate"):
            class_name = type(model).__name__
            raise ValueError(
                f"`{class_name}` is not a sequence-to-sequence model such as `BartForConditionalGeneration`."
            )
        scores_texts = args.predict_with_generate and not args.prediction_loss_only and compute_metrics is None
        if scores_texts and not hasattr(processing_class, "batch_decode"):
            raise ValueError("Texts need a tokenizer as `processing_class`, or set `predict_with_generate=False`.")
        self.text_metrics = text_metrics
        self._text_names: list[str] = []
        if scores_texts:
            args.check_joint_metrics()
            compute_metrics = self._score_texts
            if kwargs.get("eval_dataset") is not None:
                # Fail before training if a package for the metrics is missing.
                self._text_names = list(text_metrics(["a text"], ["a text"]))
        kwargs |= {"processing_class": processing_class, "compute_metrics": compute_metrics}
        super().__init__(model, args=args, **kwargs)
        if isinstance(self.data_collator, DataCollatorForSeq2Seq):
            # With label smoothing, the collator has to shift the labels.
            self.data_collator.model = self._own_model
        if self.args.generation_max_length is not None:
            self.args.generation_max_length = within_positions(self._own_model, self.args.generation_max_length)

    def _default_metric(self) -> str:
        return self._text_names[0] if self._text_names else super()._default_metric()

    def _metric_names(self, rows: Any) -> set[str] | None:
        return {"loss", *self._text_names} if self._text_names else super()._metric_names(rows)

    def _score_texts(self, prediction: Any) -> dict[str, float]:
        predictions = decode_texts(self.processing_class, prediction.predictions)
        references = decode_texts(self.processing_class, prediction.label_ids)
        return self.text_metrics(predictions, references)

    def evaluation_loop(self, *args, **kwargs):
        """Run the evaluation without counting the rows that only fill up the last batch of several processes."""
        self.gather_function = self.accelerator.gather_for_metrics
        # `Seq2SeqTrainer` would write defaults, such as 20 tokens at most, to the generation config that is saved.
        with searching(self._own_model, getattr(self, "_gen_kwargs", {}).get("max_length")):
            return super().evaluation_loop(*args, **kwargs)
