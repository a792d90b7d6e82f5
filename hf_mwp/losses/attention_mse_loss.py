"""Distillation of attention matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .state_loss import count_token_pairs, valid_tokens


class AttentionMSELoss(nn.Module):
    r"""
    Purpose: draws the student's attention matrices towards the teacher's: squared difference over the pairs of a
    valid query and a valid key, summed over them and over heads, divided by the number of such pairs and heads;
    computed in fp32.

    Args:
        heads (`str`, *optional*, defaults to `"each"`):
            `"each"`: head by head (TextBrewer's `attention_mse`); both models have the same number. `"sum"`: the sums
            over heads are compared (`attention_mse_sum`); for the same number of heads too, since a sum grows with
            them. `"mean"`: the means over heads are compared, for any numbers of heads.

    References:
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`attention_mse`, `attention_mse_sum`)
        - TinyBERT: https://huggingface.co/papers/1909.10351 (equation 7)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "attention
          matrix"

    Requirements:
        1. The models give attention matrices, which of the implementations in transformers only `"eager"` does. While
           training they hold the dropout of attention, if there is any.
        2. Layers are counted from 1: there is no attention in the embeddings.

    Inputs:
        - student_attention (`torch.Tensor`): `(batch, heads, tokens, tokens)`, probabilities.
        - teacher_attention (`torch.Tensor`): the same, but for the number of heads; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts; of
          cross-attention `(batch, queries, keys)`.

    Relations:
        - [`NSTLoss`] compares similarities of states, which are of the same shape, without any weights of attention.

    Example:
        >>> AttentionMSELoss()(student.attentions[0], teacher.attentions[3], mask=batch["attention_mask"])
    """

    count = staticmethod(count_token_pairs)

    def __init__(self, heads: str = "each") -> None:
        super().__init__()
        if heads not in ("each", "sum", "mean"):
            raise ValueError(f'`heads` must be "each", "sum" or "mean", got {heads!r}.')
        self.heads = heads

    def forward(self, student_attention: Tensor, teacher_attention: Tensor, mask: Tensor | None = None) -> Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        shapes = [tuple(each.shape) for each in (student_attention, teacher_attention)]
        if any(len(shape) != 4 or not shape[1] for shape in shapes) or shapes[0][::2] != shapes[1][::2]:
            raise ValueError(
                f"The attention of the student has the shape {shapes[0]}, the teacher's {shapes[1]}: (batch, heads, "
                "tokens, tokens) of layers with heads that read the same tokens are needed."
            )
        if self.heads != "mean" and shapes[0][1] != shapes[1][1]:
            raise ValueError(
                f"The student's layer has {shapes[0][1]} heads, the teacher's {shapes[1][1]}: only their means can be "
                'compared (`AttentionMSELoss(heads="mean")`, "attention_mean" in a config).'
            )
        student, teacher = student_attention.float(), teacher_attention.detach().float()
        if self.heads != "each":
            student, teacher = (getattr(each, self.heads)(1, keepdim=True) for each in (student, teacher))
        difference = student - teacher
        if mask is None or mask.dim() < 3:
            mask = valid_tokens(mask, difference[:, 0])
        # `where` and not a product: whatever stands at padded places, NaN included, must not reach the loss.
        pairs = mask if mask.dim() == 3 else mask.unsqueeze(-1) & mask.unsqueeze(-2)
        difference = torch.where(pairs.unsqueeze(1), difference, 0.0)
        return difference.square().sum() / (self.count(mask).clamp(min=1) * difference.shape[1])

    citation = """
@inproceedings{yang2020textbrewer,
    title = {{TextBrewer}: An Open-Source Knowledge Distillation Toolkit for Natural Language Processing},
    author = {Ziqing Yang and Yiming Cui and Zhipeng Chen and Wanxiang Che and Ting Liu and Shijin Wang and
        Guoping Hu},
    booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics: System
        Demonstrations},
    year = {2020}
}
""".strip()
