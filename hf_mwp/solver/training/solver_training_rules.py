"""Rows, learning rates and evaluation of solvers of math word problems."""

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import Trainer
from transformers.integrations import is_deepspeed_zero3_enabled
from transformers.trainer_utils import EvalLoopOutput

from hf_mwp.compress.models.model_kind import unwrapped
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.training_rules import TrainingRules
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics.accuracy import MATH_WORD_PROBLEMS, accuracy_report
from hf_mwp.solver.solving.solve_problems import solve_batch
from hf_mwp.solver.solving.solver_prediction import figure_names, read_predictions
from hf_mwp.utils.main_process import shards_weights

from .solver_config import SolverTrainingConfig
from .solver_dataset import LABELLED, ROW_INDEX, EvaluationCollator, prepare_evaluation_rows, prepare_training_rows


class SolverTrainingRules(TrainingRules):
    """
    Trains a [`Solver`] on the equations of problems, and evaluates the answers of the expressions that it finds.

    Raises:
        TypeError: `processing_class` is not an [`MwpProcessor`].
        ValueError: Model and processor have different symbols, the encoder has no embedding for some tokens,
            `label_smoothing_factor` is set, or DeepSpeed's ZeRO-3 splits the weights.
    """

    numbers_rows = notes_texts = loss_per_row = True
    card = MATH_WORD_PROBLEMS

    def __init__(self, model: nn.Module, args: BaseConfig, processing_class: Any) -> None:
        super().__init__(model, args, processing_class)
        if not isinstance(processing_class, MwpProcessor):
            kind = type(processing_class).__name__
            raise TypeError(f"The `processing_class` of a solver must be an `MwpProcessor`, got `{kind}`.")
        if is_deepspeed_zero3_enabled():
            # It gathers weights at each call of a module, and the steps of decoders differ between processes.
            raise ValueError("DeepSpeed's ZeRO-3 cannot split the weights of a solver. Use ZeRO-2, FSDP or DDP.")
        if args.label_smoothing_factor:
            raise ValueError("`label_smoothing_factor` does not apply to solvers. Set it to 0.")
        args.check_joint_metrics()
        if args.metric_for_best_model is None and not args.prediction_loss_only:
            args.metric_for_best_model = "answer_accuracy"
        # The sampler needs the length, the evaluation the row number; neither is a model input.
        names = ("input_ids", "number_positions", "number_groups", "labels", ROW_INDEX, args.length_column_name)
        self.columns = (*names, *model.extra_columns)
        self.num_beams = self.setting("num_beams")

    def setting(self, name: str) -> Any:
        """Return an argument that only solvers have; its default if the arguments are of a general trainer."""
        return getattr(self.args, name, getattr(SolverTrainingConfig, name))

    def training_rows(self, rows: Any) -> Any:
        rows = prepare_training_rows(rows, self.processing_class, self.model.target_error)
        if "language" in rows.column_names:
            self.processing_class.check_language(rows["language"], "The model", "`train_dataset`")
        return rows

    def evaluation_rows(self, rows: Any) -> Any:
        return prepare_evaluation_rows(rows, self.processing_class)

    def data_collator(self) -> Any:
        self.processing_class.check_model(self.model)
        collator = self.model.make_collator(self.processing_class)
        if self.args.torch_compile:
            # Otherwise nearly every batch needs a graph of its own.
            collator.pad_trees = True
        return collator

    def evaluation_collator(self, data_collator: Any) -> EvaluationCollator:
        return EvaluationCollator(data_collator)

    def own_rates(self) -> list[tuple[nn.Module, float, float]]:
        rate = self.setting("decoder_learning_rate")
        if rate is None:
            rate = self.args.learning_rate
        decay = self.setting("decoder_weight_decay")
        if decay is None:
            decay = self.args.weight_decay
        return [(module, rate, decay) for module in self.model.decoding_modules]

    @property
    def needs_predictions(self) -> bool:
        return not self.args.prediction_loss_only

    def metric_names(self, rows: Any) -> set[str]:
        if not self.needs_predictions:
            return super().metric_names(rows)
        return {"loss"} | figure_names(list(rows), self.processing_class, self.setting("answer_match"))

    def predict(self, trainer: Trainer, model: nn.Module, inputs: dict[str, Any]) -> tuple:
        """Return the loss of the labelled problems; the expressions of all problems, scores and losses; their rows."""
        inputs = trainer._prepare_inputs(inputs)
        rows = inputs.pop(ROW_INDEX)
        # If only some rows have labels, the collator adds their positions and a batch of them.
        labelled_positions, labelled_inputs = inputs.pop(LABELLED, (slice(None), inputs))
        # Without labels the loss is NaN and not `None`, because every process must have a tensor to gather.
        loss = torch.full((), float("nan"), device=rows.device)
        with torch.no_grad(), trainer.compute_loss_context_manager():
            if labelled_inputs.get("labels") is not None:
                loss = trainer.compute_loss(model, labelled_inputs).detach().mean().float()
        if not self.needs_predictions:
            return loss, None, None
        row_losses = loss.new_full(rows.shape, float("nan"))
        row_losses[labelled_positions] = loss
        solver = unwrapped(trainer.accelerator.unwrap_model(model))
        if shards_weights(self.args) and "solve" not in vars(solver):
            from torch.distributed.fsdp import register_fsdp_forward_method

            # FSDP gathers the weights only for `forward` and registered methods. Other models are not changed.
            register_fsdp_forward_method(solver, "solve")
        with trainer.accelerator.autocast():
            solved = solve_batch(
                solver,
                inputs,
                num_beams=self.setting("num_beams"),
                max_decode_length=self.setting("max_decode_length"),
            )
        # Copy the tensors, because tensors made in inference mode cannot be gathered in place.
        sequences = solved.sequences[:, 0].clone()
        scores = solved.scores[:, 0].float().clone()
        return loss, (sequences, scores, row_losses), rows

    def add_metrics(self, output: EvalLoopOutput, rows: Any, prefix: str) -> EvalLoopOutput:
        """Return the output with expressions and scores in the order of `rows`, and the accuracies of the answers."""
        if not self.needs_predictions:
            return output
        # Restore the dataset order; rows that several processes evaluated twice to fill their last batch count once.
        row_numbers, first_positions = np.unique(output.label_ids, return_index=True)
        sequences, scores, losses = output.predictions
        sequences = sequences[first_positions]
        scores = scores[first_positions]
        losses = losses[first_positions]
        answer_match = self.setting("answer_match")
        predictions = read_predictions(list(rows), sequences, scores, self.processing_class, answer_match)
        metrics = accuracy_report([prediction.score for prediction in predictions])
        finite_losses = losses[np.isfinite(losses)]
        if len(finite_losses):
            metrics["loss"] = float(finite_losses.mean())
        else:
            output.metrics.pop(f"{prefix}_loss", None)
        output.metrics.update({f"{prefix}_{name}": value for name, value in metrics.items()})
        return output._replace(predictions=(sequences, scores), label_ids=row_numbers, num_samples=len(predictions))
