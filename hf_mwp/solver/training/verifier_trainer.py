"""Trainer of answer verifiers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler
from hf_mwp.solver.models import Solver
from hf_mwp.solver.models.answer_verifier import AnswerVerifierModel

from .collator_epoch import CollatorEpoch


class VerifierTrainer(Trainer):
    """
    Trainer of an [`AnswerVerifierModel`] on the hidden states of a solver, whose weights do not change.

    Args:
        solver ([`Solver`]): The solver, on the device of the training.
        model ([`AnswerVerifierModel`]): The verifier.
        args (`TrainingArguments`): Arguments.
        rows (`Sequence[Mapping]`): Rows of [`verifier_rows`].
        collator ([`VerifierCollator`]): Collator of the rows.
    """

    def __init__(
        self,
        solver: Solver,
        model: AnswerVerifierModel,
        args: TrainingArguments,
        rows: Sequence[Mapping[str, Any]],
        collator: Callable[[Sequence[Mapping[str, Any]]], dict[str, Tensor]],
    ) -> None:
        callbacks = [CollatorEpoch(collator)]
        super().__init__(model, args, train_dataset=rows, data_collator=collator, callbacks=callbacks)
        self.solver = solver.eval()
        self.model_accepts_loss_kwargs = False

    def get_train_dataloader(self) -> DataLoader:
        """Return the loader of training batches with texts of similar length."""
        lengths = [len(row["input_ids"]) for row in self.train_dataset]
        size = self.args.per_device_train_batch_size

        def first_epoch() -> int:
            return int(self.state.epoch or 0)

        sampler = LengthGroupedSampler(lengths, size, self.args.seed, first_epoch)
        loader = DataLoader(self.train_dataset, size, sampler=sampler, collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)

    def compute_loss(
        self,
        model: AnswerVerifierModel,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch, whose texts the solver reads."""
        inputs = dict(inputs)
        input_ids = inputs.pop("input_ids")
        with torch.no_grad():
            states = self.solver.encode(input_ids, inputs["attention_mask"]).last_hidden_state
        outputs = model(encoder_hidden_states=states, **inputs)
        if return_outputs:
            return outputs.loss, outputs
        return outputs.loss
