"""Loss of an evaluation as a mean over labels."""

import torch
from accelerate import Accelerator
from torch import Tensor


class EvaluationLoss:
    """Losses of the batches of an evaluation, each a mean over the labels of a batch. Their mean over all labels does
    not depend on the size of the batches; `Trainer` averages them over rows. Only `mean` synchronises the device."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._counts: list[Tensor] = []
        self._num_rows = 0

    def add(self, loss: Tensor, count: Tensor | int, num_rows: int) -> None:
        """Record the loss of a batch with `count` labels in `num_rows` rows."""
        loss = loss.detach().mean().float()
        self._losses.append(loss)
        self._counts.append(torch.as_tensor(count, dtype=torch.float32, device=loss.device))
        self._num_rows += num_rows

    def mean(self, accelerator: Accelerator) -> float | None:
        """Return the mean over the labels of all processes, or `None` if there are no labels or exactly one in each
        row, as then the mean of `Trainer` is the same."""
        if not self._losses:
            return None
        losses = torch.stack(self._losses)
        counts = torch.stack(self._counts)
        # The mean over no labels is NaN.
        total = torch.where(counts > 0, losses * counts, 0.0).sum()
        sums = torch.stack([total, counts.sum(), counts.new_tensor(self._num_rows)])
        total, num_labels, num_rows = accelerator.reduce(sums, reduction="sum").tolist()
        return None if num_labels in (0, num_rows) else total / num_labels
