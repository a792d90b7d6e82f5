"""Loss on the directions of hidden states."""

import torch
from torch import Tensor

from .state_loss import StateLoss, citation_of, directions


class CosineLoss(StateLoss):
    r"""
    One minus the cosine between the hidden states of student and teacher, averaged over the valid tokens. The norms
    of the states have no influence. Computed in fp32, or fp64 for fp64 states.

    References:
        - DistilBERT: https://huggingface.co/papers/1910.01108 (section 3)
        - Dasgupta and Cohn, Improving Language Model Distillation through Hidden State Matching (ICLR 2025): the
          variant called MSE in the authors' implementation

    Requirements: The same width in both models, as for [`HiddenMSELoss`].

    Inputs: As in [`HiddenMSELoss`].

    Relations: [`HiddenMSELoss`] also compares norms. [`CKALoss`] needs neither the same width nor the same
    directions.

    Example:
        >>> CosineLoss()(projection(student_states[1]), teacher_states[4], mask=batch["attention_mask"])
    """

    needs_equal_width = True

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        distance = 1 - (directions(student_hidden) * directions(teacher_hidden)).sum(-1)
        return torch.where(mask, distance, 0.0).sum() / mask.sum().clamp(min=1)

    citation = citation_of("sanh2019distilbert")
