"""Loss on hidden states and embedding outputs: squared difference."""

from torch import Tensor

from .state_loss import StateLoss, citation_of


class HiddenMSELoss(StateLoss):
    r"""
    Squared difference between the hidden states of student and teacher, averaged over width and valid tokens. Computed
    in fp32. It is used for all layers, including the embedding output (layer 0).

    References:
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), the losses on hidden
          states and on embeddings
        - TinyBERT: https://huggingface.co/papers/1909.10351 (equations 8 and 9)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`hidden_mse`)

    Requirements: The same width in both models. Otherwise the caller first applies a trained linear map to the
    student's states, as [`DistillationTrainer`] does.

    Inputs:
        - student_hidden (`torch.Tensor`): `(batch, tokens, width)`.
        - teacher_hidden (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero for tokens that count; usually the
          attention mask.

    Relations: [`LogitDistillationLoss`] compares predictions and needs no layer mapping.

    Example:
        >>> HiddenMSELoss()(projection(student_states[1]), teacher_states[4], mask=batch["attention_mask"])
    """

    needs_equal_width = True

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        return (student_hidden - teacher_hidden).square().sum() / (mask.sum().clamp(min=1) * student_hidden.shape[-1])

    citation = citation_of("ming2025compact")
