"""Trainer for solvers of math word problems."""

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.integrations import is_deepspeed_zero3_enabled
from transformers.trainer_utils import EvalLoopOutput, has_length

from ...data.batches.mwp_processor import MwpProcessor
from ...metrics import accuracy_report
from ...models.model_kind import ModelKind, kind_of
from ...solving.solve_problems import solve_batch
from ...solving.solver_prediction import figure_names, read_predictions
from ...store.runs.main_process import splits_weights
from ..base_trainer import BaseTrainer
from .solver_config import SolverTrainingConfig
from .solver_dataset import LABELLED, ROW_INDEX, EvaluationCollator, prepare_evaluation_rows, prepare_training_rows


COLUMNS = ("input_ids", "number_positions", "number_groups", "labels", ROW_INDEX)


class SolverTrainer(BaseTrainer):
    """
    Trainer for solvers of math word problems, such as [`MwpSolver`]: trains on equations and evaluates answers.

    Args:
        model ([`MwpSolver`]): The solver.
        args ([`SolverTrainingConfig`], *optional*): Arguments.
        data_collator (`Callable`, *optional*): Collator of encoded rows; [`~Solver.make_collator`] by default.
        train_dataset, eval_dataset (`datasets.Dataset` or `list[dict]`, *optional*):
            Rows of [`load_mwp_dataset`], raw or encoded by [`~MwpProcessor.prepare_dataset`]; `eval_dataset` may also
            be a `dict` of such datasets. Training leaves out rows whose equation cannot be encoded, with a warning;
            evaluation keeps all rows and counts unsolved problems as wrong.
        processing_class ([`MwpProcessor`]): Masks numbers, tokenises, encodes equations; saved with the model.
        kwargs: As in `Trainer` (`callbacks`, `compute_metrics`, `optimizers`, ...). `compute_metrics` gets the prefix
            ids, scores and losses of the rows as predictions, and their indices in the dataset as labels.

    Raises:
        TypeError: The model is not a solver, `processing_class` is not an [`MwpProcessor`], or a dataset has the wrong
            type.
        ValueError: Model and processor have different symbols, the encoder has no embedding for some tokens, no
            training problem is in the processor's language, or DeepSpeed's ZeRO-3 splits the weights.

    Example:
        >>> data = load_mwp_dataset("asdiv_a", fold=0)
        >>> trainer = SolverTrainer(
        ...     model=solver,
        ...     args=SolverTrainingConfig(output_dir="teacher", num_train_epochs=12, eval_strategy="epoch"),
        ...     train_dataset=data["train"],
        ...     eval_dataset=data["test"],
        ...     processing_class=processor,
        ... )
        >>> trainer.train()
        >>> trainer.evaluate()["eval_answer_accuracy"]
    """

    config_class = SolverTrainingConfig
    solvers_only = True

    def __init__(
        self,
        model: nn.Module | None = None,
        args: SolverTrainingConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        **kwargs,
    ) -> None:
        args = self._checked(args, kwargs)
        _check_not_empty(train_dataset, eval_dataset)
        self.kind: ModelKind = kind_of(model)
        if self.solvers_only and not self.kind.is_solver:
            remedy = "Add a decoder with `MwpSolver.from_encoder_decoder_pretrained(encoder, processor)`."
            if hasattr(model, "peft_config"):
                remedy = "Add adapters to a solver with `hf_mwp.add_lora(solver, rank)`."
            raise TypeError(f"Expected a `Solver`, got `{type(model).__name__}`. {remedy}")
        if args.label_smoothing_factor:
            raise ValueError("`label_smoothing_factor` does not apply to solvers and distillation. Set it to 0.")
        if self.kind.is_solver and not isinstance(processing_class, MwpProcessor):
            kind = type(processing_class).__name__
            raise TypeError(f"The `processing_class` of a solver must be an `MwpProcessor`, got `{kind}`.")
        self._numbers_rows, self._evaluated = self.kind.is_solver, None
        if self.kind.is_solver:
            args.check_joint_metrics()
            if train_dataset is not None:
                train_dataset = prepare_training_rows(train_dataset, processing_class, model.target_error)
                languages = train_dataset.unique("language") if "language" in train_dataset.column_names else ()
                processing_class.check_language(languages, "The model", "`train_dataset`")
            if isinstance(eval_dataset, dict):
                eval_dataset = {n: prepare_evaluation_rows(part, processing_class) for n, part in eval_dataset.items()}
            elif eval_dataset is not None:
                eval_dataset = prepare_evaluation_rows(eval_dataset, processing_class)
            if args.metric_for_best_model is None and not args.prediction_loss_only:
                args.metric_for_best_model = "answer_accuracy"
        super().__init__(model, args, data_collator, train_dataset, eval_dataset, processing_class, **kwargs)
        if self.kind.is_solver:
            if is_deepspeed_zero3_enabled():
                # It gathers the weights of a module at each call, and decoders run a different number of steps in each
                # process.
                raise ValueError("DeepSpeed's ZeRO-3 cannot split the weights of a solver. Use ZeRO-2, FSDP or DDP.")
            processing_class.check_model(self.model)
            if data_collator is None:
                self.data_collator = self.model.make_collator(processing_class)

    def _set_signature_columns_if_needed(self) -> None:
        if self._signature_columns is None and self.kind.is_solver:
            # The sampler needs the length, the evaluation the row number; neither is a model input.
            self._signature_columns = [*COLUMNS, *self.model.extra_columns, self.args.length_column_name]
        super()._set_signature_columns_if_needed()

    @property
    def _notes_texts(self) -> bool:
        return self.kind.is_solver or super()._notes_texts

    def _own_rates(self) -> list[tuple[nn.Module, float, float]]:
        if not self.kind.is_solver:
            return []
        args = self.args
        rate = args.learning_rate if args.decoder_learning_rate is None else args.decoder_learning_rate
        decay = args.weight_decay if args.decoder_weight_decay is None else args.decoder_weight_decay
        return [(module, rate, decay) for module in self.model.decoding_modules]

    # Evaluation

    @property
    def _decodes(self) -> bool:
        return self.kind.is_solver and not self.args.prediction_loss_only

    def _metric_names(self) -> set[str] | None:
        if not self._decodes or self.compute_metrics is not None:
            return super()._metric_names()
        return {"loss"} | figure_names(list(self.eval_dataset), self.processing_class, self.args.answer_match)

    @property
    def evaluation_collator(self) -> Any:
        """Collator of evaluation batches; for solvers it adds row numbers."""
        return EvaluationCollator(self.data_collator) if self.kind.is_solver else self.data_collator

    def _prepare_evaluation(self, rows: Any) -> Any:
        if self.kind.is_solver:
            rows = self._evaluated = prepare_evaluation_rows(rows, self.processing_class)
        return rows

    def get_eval_dataloader(self, eval_dataset=None):
        """Return the loader of the evaluation rows, which may be raw or encoded."""
        if eval_dataset is None or isinstance(eval_dataset, str):
            self._evaluated = self.eval_dataset if eval_dataset is None else self.eval_dataset[eval_dataset]
        return super().get_eval_dataloader(eval_dataset)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        """For solvers, return the loss of the labelled problems and the best decoded tree of each problem."""
        if not self.kind.is_solver:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        inputs = self._prepare_inputs(inputs)
        rows, (labelled, part) = inputs.pop(ROW_INDEX), inputs.pop(LABELLED, (None, inputs))
        # Without labels the loss is NaN and not `None`, because every process must have a tensor to gather.
        loss = torch.full((), float("nan"), device=rows.device)
        with torch.no_grad(), self.compute_loss_context_manager():
            if part.get("labels") is not None:
                loss = self.compute_loss(model, part).detach().mean().float()
        if not self._decodes:
            return loss, None, None
        row_losses = loss.new_full(rows.shape, float("nan"))
        row_losses[slice(None) if labelled is None else labelled] = loss
        own = self.accelerator.unwrap_model(model)
        if splits_weights(self.args) and "solve" not in vars(own):
            from torch.distributed.fsdp import register_fsdp_forward_method

            # FSDP gathers the weights only for `forward` and registered methods. Other models are not changed.
            register_fsdp_forward_method(own, "solve")
        with self.accelerator.autocast():
            args = self.args
            solved = solve_batch(own, inputs, num_beams=args.num_beams, max_decode_length=args.max_decode_length)
        # Copy the tensors, because tensors made in inference mode cannot be gathered in place.
        sequences, scores = solved.sequences[:, 0].clone(), solved.scores[:, 0].float().clone()
        return loss, (sequences, scores, row_losses), rows

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ) -> EvalLoopOutput:
        """Run the evaluation. For solvers, also decode, check the answers and add accuracies to the metrics."""
        loss_only = False if self._decodes else prediction_loss_only
        output = super().evaluation_loop(dataloader, description, loss_only, ignore_keys, metric_key_prefix)
        if not self._decodes:
            return output
        # Restore the dataset order; rows that several processes evaluated twice to fill their last batch count once.
        rows, first = np.unique(output.label_ids, return_index=True)
        sequences, scores, losses = (values[first] for values in output.predictions)
        evaluated = list(self._evaluated)
        predictions = read_predictions(evaluated, sequences, scores, self.processing_class, self.args.answer_match)
        metrics = accuracy_report([prediction.score for prediction in predictions])
        finite = losses[np.isfinite(losses)]
        if len(finite):
            metrics["loss"] = float(finite.mean())
        else:
            output.metrics.pop(f"{metric_key_prefix}_loss", None)
        output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in metrics.items()})
        return output._replace(predictions=(sequences, scores), label_ids=rows, num_samples=len(predictions))


def _check_not_empty(train_dataset: Any, eval_dataset: Any) -> None:
    """Raise `ValueError` if a dataset of known length is empty."""
    parts = eval_dataset if isinstance(eval_dataset, dict) else {"": eval_dataset}
    given = {"train_dataset": train_dataset} | {f"eval_dataset {name}".strip(): rows for name, rows in parts.items()}
    for name, rows in given.items():
        if has_length(rows) and len(rows) == 0:
            raise ValueError(f"`{name}` is empty. Pass at least one row, or `None`.")
