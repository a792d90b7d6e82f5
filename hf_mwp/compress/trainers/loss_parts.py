"""Parts of the training loss: logged means, weights by number of items, and detection of NaN."""

from typing import Any

import torch

from .non_finite_losses import TOTAL, NonFiniteLosses


class LossParts:
    """Mixin for trainers whose loss has several parts. Means of each part are logged, accumulated batches are weighted
    by their number of items (such as labelled tokens), and a NaN or infinite loss ends the training with a
    `ValueError` before anything is saved."""

    def _forget_losses(self) -> None:
        """Begin a training without recorded losses."""
        self._clear_loss_parts()
        self._non_finite = NonFiniteLosses()

    def _clear_loss_parts(self) -> None:
        self._loss_parts: dict[str, torch.Tensor] = {}
        self._num_loss_parts = 0

    def _num_items(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        """Return, for each part of the loss, the number of items it averages in a batch, or `None` if unknown."""
        return {}

    def _stack_num_items(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return the counts as one tensor (1 for an unknown count), without synchronising the device."""
        device = next(value.device for value in batch.values() if isinstance(value, torch.Tensor))
        counts = []
        for num_items in self._num_items(batch).values():
            if not isinstance(num_items, torch.Tensor):
                num_items = torch.full((), num_items or 1.0, device=device)
            counts.append(num_items.float())
        return torch.stack(counts)

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        """Return the batches of a step and, per part of the loss, the number of items in all batches and processes."""
        batches, num_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        if not batches or not self._num_items(batches[0]):
            return batches, num_items
        if len(batches) == 1 and self.accelerator.num_processes == 1:
            return batches, None
        counts = torch.stack([self._stack_num_items(batch) for batch in batches])
        return batches, self.accelerator.reduce(counts.sum(0).to(device), reduction="sum")

    def _weight_by_items(
        self, parts: dict[str, torch.Tensor], batch: dict[str, Any], totals: torch.Tensor | None
    ) -> dict:
        """Scale batch means by the batch's share of the step's items, so that they add up to the mean of the step."""
        if totals is None:
            return parts
        # `Trainer` averages over batches and processes.
        mean = totals / (self.current_gradient_accumulation_steps * self.accelerator.num_processes)
        shares = self._stack_num_items(batch) / mean.clamp(min=1e-9)
        share_of_part = dict(zip(self._num_items(batch), shares, strict=True))
        weighted = {}
        for name, loss in parts.items():
            share = share_of_part[name]
            # The mean over no items may be NaN.
            weighted[name] = (loss * share).where(share > 0, 0.0)
        return weighted

    def record_loss_parts(self, parts: dict[str, torch.Tensor]) -> None:
        """Record parts of the training loss for `log`, which reports their means, without synchronising the device."""
        for name, value in parts.items():
            total = self._loss_parts.get(name)
            value = value.detach().float()
            self._loss_parts[name] = value if total is None else total + value
        self._num_loss_parts += 1
        self._non_finite.note(parts, self.state.global_step + 1)

    def training_step(self, model, inputs, num_items_in_batch=None):
        """Run a training step and record whether its loss is finite."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._non_finite.note({TOTAL: loss}, self.state.global_step + 1)
        return loss

    def _check_losses(self) -> None:
        """Raise `ValueError` if a training loss since the last check was NaN or infinite."""
        # The gradient scaler of fp16 skips steps with such losses.
        if self.accelerator.scaler is None:
            self._non_finite.check(self.accelerator.gather)

    def evaluate(self, *args, **kwargs):
        """Evaluate, after a check of the training losses."""
        self._check_losses()
        return super().evaluate(*args, **kwargs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, adding the recorded parts of the training loss as means over all processes. Training losses are checked
        before they are logged."""
        if "loss" in logs or "train_loss" in logs:
            self._check_losses()
        if "loss" in logs and self._loss_parts:
            means = torch.stack(list(self._loss_parts.values())) / self._num_loss_parts
            means = self.accelerator.reduce(means, reduction="mean").tolist()
            logs.update(zip(self._loss_parts, means, strict=True))
            self._clear_loss_parts()
        super().log(logs, start_time)
