"""Trainer that pretrains a student on texts without equations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import TrainerCallback
from transformers.trainer_utils import EvalLoopOutput

from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.unknown_tokens import sample_rows
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.corpus.pretraining_collator import PreTrainingCollator
from hf_mwp.solver.corpus.pretraining_dataset import prepare_texts, split_texts, text_pairs, texts_of_corpus
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.metrics.pretraining import (
    STATISTICS,
    masking_statistics,
    summarise_statistics,
    tagging_report,
    tagging_statistics,
)
from hf_mwp.utils.files import write_json

from .pretraining_config import PreTrainingConfig
from .solver_dataset import ROW_INDEX


COLUMNS = ("input_ids", "pos_labels", "mask_class", "mask_unit", "text_key", ROW_INDEX)
# Labels of each part of the loss.
LABELS = {"mlm_loss": "labels", "pos_loss": "pos_labels"}


class MaskingEpoch(TrainerCallback):
    """Callback that tells a collator the epoch, on which the masks depend."""

    def __init__(self, collator: Any) -> None:
        self.collator = collator

    def on_epoch_begin(self, args, state, control, **kwargs):
        """Set the epoch of the collator."""
        self.collator.epoch = int(state.epoch or 0)


class PreTrainingTrainer(BaseTrainer):
    """
    Trainer for two pretraining tasks: masked language modelling, with more masks on mathematical keywords, numbers and
    quantities, and part-of-speech tagging of each token of the masked texts; see [`PreTrainingConfig`]. Both losses
    are logged. Masks depend only on the seed, the epoch and the text, so a resumed training uses the same masks.

    Evaluations report `loss` and means over all tokens of the evaluation texts: with fixed masks, `mlm_loss`,
    `mlm_accuracy`, `mlm_loss_keywords` and `mlm_loss_numbers`; without masks, `pos_loss` and `pos_accuracy` of the
    labels, and `pos_f1`, `pos_precision` and `pos_recall` over words. The results of each tag are written to
    `pos_tags_{prefix}.json` in `output_dir`.

    Args:
        model ([`MwpStudentForPreTraining`]): The student; with `pos_loss_weight=0` any masked language model.
        args ([`PreTrainingConfig`], *optional*): Arguments.
        data_collator (`Callable`, *optional*): A [`PreTrainingCollator`] for training; made from `args` by default.
        train_dataset, eval_dataset ([`TaggedCorpus`], `list` or `datasets.Dataset`, *optional*):
            A tagged corpus, a list of (text, tagged words) or, with `pos_loss_weight=0`, of texts, or the result of
            [`encode_corpus`]. Without `eval_dataset` the share `validation_fraction` is held out.
        processing_class ([`MwpProcessor`]): Masks numbers and tokenises; saved with the model.
        progress (`Callable[[int, int | None], None]`, *optional*):
            Called with the number of encoded texts and the number of all texts (`None` if unknown).
        kwargs: As in `Trainer` (`callbacks`, `optimizers`, ...).

    Raises:
        TypeError: `model` is missing or not suitable, or `processing_class` is not an [`MwpProcessor`].
        ValueError: The tags differ from the model's tags, tokens have no embedding, or there is no text.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), pretraining tasks for
        basic problem understanding.

    Example:
        >>> corpus = tag_corpus(read_texts(["problems.txt"]), load_tagger("jieba"), cache_dir="tags")
        >>> processor = MwpProcessor(tokenizer, indexed_numbers=True)
        >>> config = MwpStudentConfig(
        ...     vocab_size=len(tokenizer), pos_labels=pos_label_list(corpus.tags), pos_tagger=corpus.tagger
        ... )
        >>> args = PreTrainingConfig(output_dir="student")
        >>> PreTrainingTrainer(MwpStudentForPreTraining(config), args, None, corpus, None, processor).train()
    """

    config_class = PreTrainingConfig
    _numbers_rows = _notes_texts = True
    evaluation_collator = None  # masks the same tokens in every evaluation and also returns the unmasked texts
    # Sources of the texts, for the record of training texts.
    text_sources = ("a corpus",)

    def __init__(
        self,
        model: nn.Module | None = None,
        args: PreTrainingConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        *,
        progress: Callable[[int, int | None], None] | None = None,
        **kwargs,
    ) -> None:
        args = self._checked(model, args, kwargs)
        _check_model(model, args, processing_class)
        weights = {"mlm_loss": args.mlm_loss_weight, "pos_loss": args.pos_loss_weight}
        self._weights = {name: weight for name, weight in weights.items() if weight}
        self._masks = "mlm_loss" in self._weights
        self._tags = "pos_loss" in self._weights
        self._corpus = train_dataset
        seed = args.seed if args.data_seed is None else args.data_seed
        encoding = (model.config, processing_class, Path(args.output_dir) / "encoded", self._tags, progress)
        with args.main_process_first(local=False, desc="encoding of the texts"):
            if train_dataset is not None:
                train_dataset = prepare_texts(train_dataset, *encoding)
            if eval_dataset is not None:
                eval_dataset = prepare_texts(eval_dataset, *encoding)
        self._encoded = train_dataset
        if train_dataset is not None and eval_dataset is None and args.validation_fraction:
            train_dataset, eval_dataset = split_texts(train_dataset, args.validation_fraction, seed)
        if eval_dataset is not None:
            eval_dataset = self._numbered(eval_dataset)
        probability = args.mlm_probability if self._masks else 0.0
        masking = (probability, args.keyword_weight, args.number_weight, seed)
        if data_collator is None:
            data_collator = PreTrainingCollator(processing_class, *masking)
        self.evaluation_collator = PreTrainingCollator(processing_class, *masking, keep_original=True)
        if self._tags:
            model.config.pos_loss_weight = args.pos_loss_weight
        super().__init__(model, args, data_collator, train_dataset, eval_dataset, processing_class, **kwargs)
        self.add_callback(MaskingEpoch(data_collator))

    @staticmethod
    def _numbered(dataset):
        if ROW_INDEX in dataset.column_names:
            return dataset
        return dataset.add_column(ROW_INDEX, np.arange(len(dataset))).with_format("numpy")

    def _sample_texts(self, train_dataset: Any) -> Iterator[tuple[Sequence[int], str | None]]:
        # The encoded rows have no texts, but the order of the corpus.
        is_encoded = hasattr(self._corpus, "column_names")
        corpus = None if is_encoded else text_pairs(self._corpus)
        for index, row in sample_rows(self._encoded):
            text = None if is_encoded else corpus[index][0]
            yield row["input_ids"], text

    def _input_columns(self) -> list[str]:
        return [*COLUMNS, self.args.length_column_name]

    @cached_property
    def _own_texts(self) -> TrainingTexts:
        return texts_of_corpus(self._corpus, self._encoded, self.train_dataset, self.text_sources)

    @property
    def _predictions(self) -> nn.Module:
        """Masked-language-modelling head of a student, or the model itself if there is no such head."""
        return getattr(getattr(self.model, "cls", None), "predictions", self.model)

    @contextmanager
    def _sparse(self):
        """Inside the context, compute logits only at masked tokens."""
        head = self._predictions
        if not hasattr(head, "sparse"):
            yield
            return
        was_sparse = head.sparse
        head.sparse = True
        try:
            yield
        finally:
            head.sparse = was_sparse

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None):
        with self._sparse():
            return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)

    def _num_items(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: batch[LABELS[name]].ne(-100).sum() for name in self._weights}

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Return the weighted sum of both losses, each a mean over all labelled tokens of the step."""
        unused = set()
        if not self._tags:
            unused.add("pos_labels")
        if not hasattr(self._predictions, "sparse"):
            # Other models do not accept this input.
            unused.add("masked_positions")
        inputs = {name: value for name, value in inputs.items() if name not in unused}
        outputs = model(**inputs)
        # A masked language model without a tagging head has a single loss.
        losses = {name: outputs.get(name, outputs.get("loss")) for name in self._weights}
        losses = self._weight_by_items(losses, inputs, num_items_in_batch)
        if model.training:
            self.record_loss_parts(losses)
        loss = self._weighted(losses)
        return (loss, outputs) if return_outputs else loss

    def _prepare_evaluation(self, texts):
        folder = Path(self.args.output_dir) / "encoded"
        config = self.accelerator.unwrap_model(self.model).config
        return self._numbered(prepare_texts(texts, config, self.processing_class, folder, self._tags))

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        """Return, for each text, the statistics of both tasks (sums over its tokens) and the predicted tags."""
        inputs = self._prepare_inputs(inputs)
        rows = inputs[ROW_INDEX]
        mask = inputs["attention_mask"]
        sums = {name: torch.zeros(len(rows), device=rows.device) for name in STATISTICS}
        predictions: tuple = ()
        references: tuple = (rows,)
        with torch.no_grad(), self.compute_loss_context_manager():
            if self._masks:
                outputs = model(input_ids=inputs["input_ids"], attention_mask=mask, labels=inputs["labels"])
                sums |= masking_statistics(outputs["logits"], inputs["labels"], inputs["mask_class"])
            if self._tags:
                labels = inputs["pos_labels"]
                texts = inputs.get("original_ids", inputs["input_ids"])
                logits = model(input_ids=texts, attention_mask=mask, pos_labels=labels)["pos_logits"]
                sums |= tagging_statistics(logits, labels)
                predictions = (logits.argmax(-1),)
                references = (rows, labels)
        statistics = torch.stack([sums[name].float() for name in STATISTICS], dim=1)
        loss = self._weighted(summarise_statistics(statistics.cpu().numpy()))
        loss = torch.tensor(loss, device=rows.device)
        if prediction_loss_only:
            return loss, None, None
        return loss, (statistics, *predictions), references

    def _weighted(self, losses: dict[str, Any]) -> Any:
        total = 0
        for name, weight in self._weights.items():
            if name in losses:
                total = total + weight * losses[name]
        return total

    def _metric_names(self, rows: Any) -> None:
        return None  # they depend on the texts

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ) -> EvalLoopOutput:
        """Run the evaluation and add the metrics of masked language modelling and tagging."""
        # Without `compute_metrics`, `Trainer` would request only the loss.
        loss_only = self.args.prediction_loss_only
        with self._sparse():
            output = super().evaluation_loop(dataloader, description, loss_only, ignore_keys, metric_key_prefix)
        if output.predictions is None:
            return output
        # `Trainer` unpacks tuples of one array.
        references = output.label_ids if isinstance(output.label_ids, tuple) else (output.label_ids,)
        predictions = output.predictions if isinstance(output.predictions, tuple) else (output.predictions,)
        # Rows that several processes evaluated twice to fill their last batch count once.
        _, first_positions = np.unique(references[0], return_index=True)
        metrics = summarise_statistics(predictions[0][first_positions])
        metrics["loss"] = self._weighted(metrics)
        if self._tags:
            labels = self.accelerator.unwrap_model(self.model).config.pos_labels
            report = tagging_report(predictions[1][first_positions], references[1][first_positions], labels)
            for name in ("f1", "precision", "recall", "accuracy"):
                metrics[f"pos_{name}"] = report[name]
            if self.is_world_process_zero():
                write_json(Path(self.args.output_dir) / f"pos_tags_{metric_key_prefix}.json", report)
        output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in metrics.items()})
        return output._replace(num_samples=len(first_positions))


def _check_model(model: nn.Module | None, args: PreTrainingConfig, processor: Any) -> None:
    """Raise `TypeError` or `ValueError` if the model cannot be pretrained with these arguments."""
    name = type(model).__name__
    if not isinstance(processor, MwpProcessor):
        raise TypeError(
            f"`processing_class` must be an `MwpProcessor`, got `{type(processor).__name__}`. Use "
            "`MwpProcessor(tokenizer)`."
        )
    if kind_of(model).is_solver:
        raise TypeError(f"`model` must be a model to pretrain, such as `MwpStudentForPreTraining`, got {name}.")
    if args.pos_loss_weight and not getattr(model.config, "num_pos_tags", 0):
        raise ValueError(f"`{name}` has no tagging head. Use `MwpStudentForPreTraining`, or set `pos_loss_weight=0`.")
    num_tokens = len(processor.tokenizer)
    num_embeddings = model.get_input_embeddings().num_embeddings
    if num_tokens > num_embeddings:
        fault = f"The tokenizer has {num_tokens} tokens, but the model has only {num_embeddings} embeddings."
        raise ValueError(f"{fault} Call `processor.resize_embeddings(model)`, or use the model's own tokenizer.")
