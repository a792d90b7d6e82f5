"""Training of solvers on problems with equations."""

from __future__ import annotations

from torch import nn

from .base_trainer import BaseTrainer
from .solver_config import SolverConfig


class SolverTrainer(BaseTrainer):
    """
    Trains a solver of math word problems, for example an [`MwpSolver`], on equations, and evaluates it by its answers.

    Everything of `Trainer` works as users know it: callbacks, resuming, `push_to_hub`, several processes through
    `accelerate launch` or `torchrun`. See [`SolverConfig`] for learning rates, decoding and early stopping.

    Args:
        model ([`MwpSolver`]):
            The solver.
        args ([`SolverConfig`], *optional*):
            Arguments.
        data_collator (`Callable`, *optional*):
            Collates encoded rows; the model's own ([`~Solver.make_collator`]) by default.
        train_dataset, eval_dataset (`datasets.Dataset` or `list[dict]`, *optional*):
            Rows of [`load_mwp_dataset`], raw or encoded by [`~MwpProcessor.prepare_dataset`]; `eval_dataset` may also
            be a `dict` of them. Training leaves out rows whose equation cannot be encoded, with a warning; evaluation
            keeps all rows, and an unsolved one counts as wrong.
        processing_class ([`MwpProcessor`]):
            Masks numbers, tokenises, encodes equations; saved beside the model.
        kwargs:
            As in `Trainer` (`callbacks`, `compute_metrics`, `optimizers`, ...).

    Raises:
        TypeError: a model that cannot solve, no [`MwpProcessor`], or data sets of another kind.
        ValueError: model and processor have different symbols, or the encoder has no embedding for some tokens.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), fine-tuning with the
        GTS decoder.

    Example:

    ```python
    >>> data = load_mwp_dataset("asdiv_a", fold=0)
    >>> trainer = SolverTrainer(
    ...     model=solver,
    ...     args=SolverConfig(output_dir="teacher", num_train_epochs=12, eval_strategy="epoch"),
    ...     train_dataset=data["train"],
    ...     eval_dataset=data["test"],
    ...     processing_class=processor,
    ... )
    >>> trainer.train()
    >>> trainer.evaluate()["eval_answer_accuracy"]
    ```
    """

    config_class = SolverConfig

    def _check_models(self, model: nn.Module | None) -> None:
        if model is not None and not self.is_solver:
            raise TypeError(
                f"`{type(model).__name__}` is no solver: put a decoder on it with "
                "`MwpSolver.from_encoder_decoder_pretrained(encoder, processor)`."
            )
