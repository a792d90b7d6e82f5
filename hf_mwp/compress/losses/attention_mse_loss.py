"""Loss on attention matrices."""

import torch
from torch import Tensor, nn

from hf_mwp.utils.checked_types import checked

from .state_loss import citation_of, count_token_pairs, valid_tokens


class AttentionMSELoss(nn.Module):
    r"""
    Squared difference between the attention matrices of student and teacher, averaged over heads and over the pairs of
    a valid query and a valid key. Computed in fp32.

    Args:
        heads (`str`, *optional*, defaults to `"each"`): `"each"` compares head by head (`attention_mse` in TextBrewer)
            and `"sum"` the sums over heads (`attention_mse_sum`). Both need the same number of heads in student and
            teacher. `"mean"` compares the means over heads, for any numbers of heads.

    References:
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`attention_mse`, `attention_mse_sum`)
        - TinyBERT: https://huggingface.co/papers/1909.10351 (equation 7)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "attention
          matrix"

    Requirements:
        1. The models return attention matrices, which in Transformers only the `"eager"` attention implementation
           does. In training mode the matrices include attention dropout.
        2. Layers are counted from 1, since embeddings have no attention.

    Inputs:
        - student_attention (`torch.Tensor`): `(batch, heads, tokens, tokens)`, probabilities.
        - teacher_attention (`torch.Tensor`): the same shape except for the number of heads; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero for tokens that count;
          `(batch, queries, keys)` for cross-attention.

    Relations: [`NSTLoss`] compares similarities of hidden states instead of attention weights.

    Example:
        >>> AttentionMSELoss()(student.attentions[0], teacher.attentions[3], mask=batch["attention_mask"])
    """

    count = staticmethod(count_token_pairs)

    @checked
    def __init__(self, heads: str = "each") -> None:
        super().__init__()
        if heads not in ("each", "sum", "mean"):
            raise ValueError(f'`heads` must be "each", "sum" or "mean", got {heads!r}.')
        self.heads = heads

    def forward(self, student_attention: Tensor, teacher_attention: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if no token is valid."""
        student_shape = tuple(student_attention.shape)
        teacher_shape = tuple(teacher_attention.shape)
        same_heads = self.heads == "mean" or student_shape[1] == teacher_shape[1]
        if student_shape[::2] != teacher_shape[::2] or not same_heads:
            raise ValueError(
                f"The student's layer has {student_shape[1]} heads, the teacher's {teacher_shape[1]} (shapes "
                f"{student_shape} and {teacher_shape}). Compare the same tokens. If the numbers of heads differ, use "
                'the means over heads: `AttentionMSELoss(heads="mean")`, or "attention_mean" in a config.'
            )
        student = student_attention.float()
        teacher = teacher_attention.detach().float()
        if self.heads == "sum":
            student = student.sum(1, keepdim=True)
            teacher = teacher.sum(1, keepdim=True)
        elif self.heads == "mean":
            student = student.mean(1, keepdim=True)
            teacher = teacher.mean(1, keepdim=True)
        difference = student - teacher
        if mask is not None and mask.dim() == 3:
            pairs = mask
        else:
            mask = valid_tokens(mask, difference[:, 0])
            pairs = mask.unsqueeze(-1) & mask.unsqueeze(-2)
        # `where` instead of a product: values at padding, NaN included, must not reach the loss.
        difference = torch.where(pairs.unsqueeze(1), difference, 0.0)
        return difference.square().sum() / (self.count(mask).clamp(min=1) * difference.shape[1])

    citation = citation_of("yang2020textbrewer")
