"""Loss on the flow between two layers."""

from torch import Tensor

from .state_loss import StateLoss, citation_of, count_texts


class FSPLoss(StateLoss):
    r"""
    Squared difference between the matrices `H₁ᵀ H₂ / length` `(width, width)` of student and teacher, averaged over
    entries and texts. `H₁` and `H₂` are the states of two layers for a text; the matrix describes the flow of the
    solution procedure (FSP) from one layer to the other. Computed in fp32.

    References:
        - Yim et al., A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning
          (CVPR 2017), equations 1 and 2
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`fsp`, also `gram`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "FSP
          matrix"

    Requirements: The same widths in both models, as for [`HiddenMSELoss`].

    Inputs: As in [`HiddenMSELoss`], for a sequence of two layers of each model, which may differ in width. Pass the
    same layer twice for its uncentred covariance.

    Relations:
        - [`NSTLoss`] compares the products of tokens instead of the products of features.
        - [`HiddenMSELoss`] compares the states themselves.

    Example:
        >>> FSPLoss()(student_states[0:2], (teacher_states[0], teacher_states[4]), mask=batch["attention_mask"])
    """

    needs_equal_width = True
    num_layers = 2
    count = staticmethod(count_texts)

    def compare(self, student_hidden: list[Tensor], teacher_hidden: list[Tensor], mask: Tensor) -> Tensor:
        lengths = mask.sum(-1).clamp(min=1).view(-1, 1, 1)
        student_flow = student_hidden[0].transpose(1, 2) @ student_hidden[1] / lengths
        teacher_flow = teacher_hidden[0].transpose(1, 2) @ teacher_hidden[1] / lengths
        num_texts = self.count(mask).clamp(min=1)
        num_entries = student_flow.shape[1] * student_flow.shape[2]
        return (student_flow - teacher_flow).square().sum() / (num_texts * num_entries)

    citation = citation_of("yim2017gift")
