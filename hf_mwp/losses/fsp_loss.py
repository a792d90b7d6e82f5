"""Distillation of the flow between two layers."""

from __future__ import annotations

from torch import Tensor

from .state_loss import StateLoss, count_texts


class FSPLoss(StateLoss):
    r"""
    Purpose: draws the flow of the solution procedure in the student, from one layer to another, towards the teacher's:
    squared difference of the matrices `H₁ᵀ H₂ / length` `(width, width)` of each text, averaged over their entries and
    over texts; computed in fp32.

    References:
        - Yim et al., A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning
          (CVPR 2017), equations 1 and 2
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`fsp`, also `gram`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "FSP
          matrix"

    Requirements: Equal widths, as for [`HiddenMSELoss`].

    Inputs:
        - student_hidden (`Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of two layers, which may
          differ in width; twice the same for the uncentred covariance of one layer.
        - teacher_hidden (`Sequence[torch.Tensor]`): the same shapes; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations:
        - [`NSTLoss`] multiplies the same states the other way: token by token, not feature by feature.
        - [`HiddenMSELoss`] compares the states themselves.

    Example:
        >>> FSPLoss()(student_states[0:2], (teacher_states[0], teacher_states[4]), mask=batch["attention_mask"])
    """

    needs_equal_width = True
    num_layers = 2
    count = staticmethod(count_texts)

    def compare(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor) -> Tensor:
        lengths = mask.sum(-1).clamp(min=1).view(-1, 1, 1)
        student, teacher = (first.transpose(1, 2) @ second / lengths for first, second in (ours, theirs))
        texts = self.count(mask).clamp(min=1)
        return (student - teacher).square().sum() / (texts * student.shape[1] * student.shape[2])

    citation = """
@inproceedings{yim2017gift,
    title = {A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning},
    author = {Junho Yim and Donggyu Joo and Jihoon Bae and Junmo Kim},
    booktitle = {IEEE Conference on Computer Vision and Pattern Recognition},
    year = {2017}
}
""".strip()
