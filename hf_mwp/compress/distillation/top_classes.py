"""The most likely classes of a large vocabulary, which a teacher cache stores in place of all logits."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hf_mwp.compress.losses.logit_distillation_loss import merge_other_classes


TOP_CLASSES = "top_classes"  # name of the stored classes among the outputs of a cached teacher


@dataclass(frozen=True)
class TopClasses:
    """Choice of the teacher's `count` most likely classes among the first `num_classes`. Their probabilities are
    softened by `temperature`."""

    count: int
    temperature: float
    num_classes: int

    def check(self) -> None:
        """Raise `ValueError` if fewer classes exist than are to be stored."""
        if not 1 <= self.count <= self.num_classes:
            raise ValueError(
                f"`cache_top_k` must be between 1 and the size of the vocabulary, {self.num_classes}, got "
                f"{self.count}."
            )

    def of(self, logits: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
        """
        Return the most likely classes and their log-probabilities.

        Args:
            logits (`torch.Tensor`): `(positions, classes)`.
            targets (`torch.Tensor`, *optional*): The correct class `(positions,)`, which replaces the last of the most
                likely classes if it is not among them.

        Returns:
            `tuple[torch.Tensor, torch.Tensor]`: classes `(positions, count)` and log-probabilities
            `(positions, count + 1)`, the last of all other classes together.
        """
        log_probs = (logits[..., : self.num_classes].float() / self.temperature).log_softmax(-1)
        classes = log_probs.topk(self.count, -1).indices
        if targets is not None:
            targets = targets.unsqueeze(-1)
            is_missing = ~(classes == targets).any(-1, keepdim=True)
            # A label may be no class that is compared.
            is_missing &= (targets >= 0) & (targets < log_probs.shape[-1])
            last = torch.where(is_missing, targets, classes[:, -1:])
            classes = torch.cat([classes[:, :-1], last], -1)
        return classes, merge_other_classes(log_probs, classes)
