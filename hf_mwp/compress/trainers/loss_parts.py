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
        self._loss_parts, self._num_loss_parts = {}, 0
        self._non_finite = NonFiniteLosses()

    def _num_items(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        """Return, for each part of the loss, the number of items it averages in a batch, or `None` if unknown."""
        return {}

    def _stack_num_items(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return the counts as one tensor (1 for an unknown count), without synchronising the device."""
        device = next(value.device for value in batch.values() if isinstance(value, torch.Tensor))
        return torch.stack(
            [
                count.float() if isinstance(count, torch.Tensor) else torch.full((), count or 1.0, device=device)
                for count in self._num_items(batch).values()
            ]
        )

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        """Return the batches of a step and, per part of the loss, the number of items in all batches and processes."""
        batches, num_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        if not batches or not self._num_items(batches[0]):
            return batches, num_items
        if len(batches) == 1 and self.accelerator.num_processes == 1:
            return batches, None
        counts = torch.stack([self._stack_num_items(batch) for batch in batches]).sum(0).to(device)
        return batches, self.accelerator.reduce(counts, reduction="sum")

    def _weight_by_items(
        self, parts: dict[str, torch.Tensor], batch: dict[str, Any], totals: torch.Tensor | None
    ) -> dict:
        """Scale batch means by the batch's share of the step's items, so that they add up to the mean of the step."""
        if totals is None:
            return parts
        # `Trainer` averages over batches and processes.
        mean = totals / (self.current_gradient_accumulation_steps * self.accelerator.num_processes)
        shares = dict(zip(self._num_items(batch), self._stack_num_items(batch) / mean.clamp(min=1e-9), strict=True))
        # The mean over no items may be NaN.
        return {name: (part * shares[name]).where(shares[name] > 0, 0.0) for name, part in parts.items()}

    def record_loss_parts(self, parts: dict[str, torch.Tensor]) -> None:
        """Record parts of the training loss for `log`, which reports their means, without synchronising the device."""
        for name, value in parts.items():
            value = value.detach().float()
            self._loss_parts[name] = self._loss_parts[name] + value if name in self._loss_parts else value
        self._num_loss_parts += 1
        self._non_finite.note(parts, self.state.global_step + 1)

    def training_step(self, model, inputs, num_items_in_batch=None):
        """Run a training step and record whether its loss is finite."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._non_finite.note({TOTAL: loss}, self.state.global_step + 1)
        return loss

    def _maybe_log_save_evaluate(self, *args, **kwargs):
        control = self.control
        looks = control.should_log or control.should_evaluate or control.should_save or control.should_training_stop
        # The gradient scaler of fp16 skips steps with such losses.
        if looks and self.accelerator.scaler is None:
            self._non_finite.check(self.accelerator.gather)
        super()._maybe_log_save_evaluate(*args, **kwargs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, adding the recorded parts of the training loss as means over all processes."""
        if "loss" in logs and self._loss_parts:
            means = torch.stack(list(self._loss_parts.values())) / self._num_loss_parts
            means = self.accelerator.reduce(means, reduction="mean").tolist()
            logs.update(zip(self._loss_parts, means, strict=True))
            self._loss_parts, self._num_loss_parts = {}, 0
        super().log(logs, start_time)
