"""Loss on the similarities between the tokens of a text."""

from torch import Tensor

from .state_loss import StateLoss, citation_of, count_token_pairs


class NSTLoss(StateLoss):
    r"""
    Squared difference between the token similarities `H₁ H₂ᵀ / width` `(tokens, tokens)` of student and teacher,
    averaged over the pairs of valid tokens. Computed in fp32. This is neuron selectivity transfer (NST) with the
    polynomial kernel, a maximum mean discrepancy.

    References:
        - Like What You Like: Knowledge Distill via Neuron Selectivity Transfer: https://huggingface.co/papers/1707.01219
          (section 4)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`nst`, also `mmd`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "NST
          matrix"

    Requirements: Widths may differ, and no projection is needed.

    Inputs: As in [`HiddenMSELoss`], for one layer or a sequence of two layers of each model.

    Relations:
        - [`FSPLoss`] compares the products of features instead of the products of tokens.
        - [`AttentionMSELoss`] compares learned similarities (attention), head by head.

    Example:
        >>> NSTLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    num_layers = 2
    count = staticmethod(count_token_pairs)

    def compare(self, student_hidden: list[Tensor], teacher_hidden: list[Tensor], mask: Tensor) -> Tensor:
        student_similarities = _similarities(*student_hidden)
        teacher_similarities = _similarities(*teacher_hidden)
        return (student_similarities - teacher_similarities).square().sum() / self.count(mask).clamp(min=1)

    citation = citation_of("huang2017like")


def _similarities(first: Tensor, second: Tensor) -> Tensor:
    return first @ second.transpose(1, 2) / first.shape[-1]
