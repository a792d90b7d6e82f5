"""Loss on the first token's states of several layers."""

from torch import Tensor

from .state_loss import StateLoss, citation_of, count_texts, directions


class PKDLoss(StateLoss):
    r"""
    Squared distance between the first token's states (`[CLS]`) of student and teacher, each normalised to length 1,
    averaged over several layers and over texts. Computed in fp32. In patient knowledge distillation (PKD) the student
    learns from many layers instead of only the last.

    References:
        - Patient Knowledge Distillation for BERT Model Compression: https://huggingface.co/papers/1908.09355 (equation
          7, there a sum over layers and texts)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`pkd`)

    Requirements: The same width in both models, as for [`HiddenMSELoss`].

    Inputs: As in [`HiddenMSELoss`], for a sequence of layers of each model. The first valid token of a text is its
    `[CLS]`.

    Relations: [`HiddenMSELoss`] compares the states of all tokens, including their lengths.

    Example:
        >>> PKDLoss()(student_states[1:4], teacher_states[4:13:4], mask=batch["attention_mask"])
    """

    needs_equal_width = True
    num_layers = None
    count = staticmethod(count_texts)

    def compare(self, student_hidden: list[Tensor], teacher_hidden: list[Tensor], mask: Tensor) -> Tensor:
        total = 0
        for student_layer, teacher_layer in zip(student_hidden, teacher_hidden, strict=True):
            difference = _first(student_layer, mask) - _first(teacher_layer, mask)
            total = total + difference.square().sum()
        return total / (self.count(mask).clamp(min=1) * len(student_hidden))

    citation = citation_of("sun2019patient")


def _first(states: Tensor, mask: Tensor) -> Tensor:
    """Return the normalised state `(batch, width)` of each text's first token, zero for a text without tokens."""
    position = mask.int().argmax(-1).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
    return directions(states.gather(1, position).squeeze(1))
