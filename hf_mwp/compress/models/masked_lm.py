"""Masked language modelling with encoders that have no language modelling head."""

from functools import partial

from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput

from .mwp_student.layers_mwp_student import score_words


class EmbeddingMaskedLM:
    """Mixin that makes an encoder class (listed after it) a masked language model without further weights. Logits
    `(batch, tokens, vocabulary)` are products of the last hidden states with the word embeddings."""

    sparse = False  # with labels, compute logits `(masked tokens, vocabulary)` only for labelled tokens

    def forward(self, input_ids=None, attention_mask=None, labels=None, masked_positions=None, **kwargs):
        kwargs["return_dict"] = True
        states = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs).last_hidden_state
        score = partial(nn.functional.linear, weight=self.get_input_embeddings().weight)
        logits, loss = score_words(score, states, labels, masked_positions, self.sparse)
        return MaskedLMOutput(loss=loss, logits=logits)


def as_masked_lm(encoder: PreTrainedModel) -> PreTrainedModel:
    """Turn an encoder of any type into a masked language model, in place. It is still saved as the plain encoder."""
    encoder_class = type(encoder)
    body = {"__module__": encoder_class.__module__}
    encoder.__class__ = type(encoder_class.__name__, (EmbeddingMaskedLM, encoder_class), body)
    return encoder
