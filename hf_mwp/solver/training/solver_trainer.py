"""Trainer for solvers of math word problems."""

from typing import Any

from torch import nn

from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.compress.trainers.base_trainer import BaseTrainer

from .solver_config import SolverTrainingConfig


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

    def __init__(
        self, model: nn.Module | None = None, args: SolverTrainingConfig | None = None, *inputs: Any, **kwargs
    ) -> None:
        args = self._checked(model, args, kwargs)
        if not kind_of(model).is_solver or hasattr(model, "peft_config"):
            remedy = "Add a decoder with `MwpSolver.from_encoder_decoder_pretrained(encoder, processor)`."
            if hasattr(model, "peft_config"):
                remedy = "Add adapters to a solver with `hf_mwp.add_lora(solver, rank)`."
            raise TypeError(f"Expected a `Solver`, got `{type(model).__name__}`. {remedy}")
        super().__init__(model, args, *inputs, **kwargs)
