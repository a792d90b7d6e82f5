import pytest
import torch
from torch import nn
from transformers import BartConfig, BartForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.modeling_outputs import MaskedLMOutput

from hf_mwp.distillation.masks import label_mask, label_offset
from tests.tiny import tiny_classifier_rows, tiny_masked_lm
from tests.trainers.distilling import bart, pad


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=16, n_layer=1, n_head=2, n_positions=32))


def llama():
    sizes = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2))


def bart_decoder():
    """A causal model whose labels are not shifted inside."""
    sizes = {"d_model": 16, "decoder_layers": 1, "decoder_ffn_dim": 16, "decoder_attention_heads": 2}
    return BartForCausalLM(BartConfig(**sizes, vocab_size=40, max_position_embeddings=32))


class Foreign(nn.Module):
    """A model that shifts in a way of its own, and says nowhere that it does."""

    def __init__(self, shift):
        super().__init__()
        self.scores, self.shift = nn.Embedding(40, 40), shift

    def forward(self, input_ids, labels=None, **inputs):
        logits = self.scores(input_ids)
        end = logits.shape[1] - self.shift
        loss = nn.functional.cross_entropy(logits[:, :end].flatten(0, 1), labels[:, self.shift :].flatten())
        return MaskedLMOutput(loss=loss, logits=logits)


def batch(labels):
    rows = tiny_classifier_rows(2)
    for row in rows:
        row["labels"] = [t if labels(place) else -100 for place, t in enumerate(row["input_ids"])]
    return pad(rows)


@pytest.mark.parametrize(
    ("make", "offset"),
    [
        (gpt2, 1),
        (llama, 1),
        (bart_decoder, 0),
        (tiny_masked_lm, 0),
        (lambda: bart(16, 0), 0),
        (lambda: Foreign(0), 0),
        (lambda: Foreign(1), 1),
    ],
)
@pytest.mark.parametrize("labels", [lambda place: True, lambda place: place > 1, lambda place: place == 2])
def test_where_a_models_own_loss_looks(make, offset, labels):
    torch.manual_seed(0)
    model, inputs = make(), batch(labels)
    with torch.no_grad():
        assert label_offset(model, inputs) == offset
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ValueError, match="`Foreign`.*`soft_label_weight=0`"):
        label_offset(Foreign(2), batch(lambda place: True))

    class Apart(Foreign):
        def forward(self, **inputs):
            output = super().forward(**inputs)
            return MaskedLMOutput(loss=output.loss, logits=output.logits.detach())

    with pytest.raises(ValueError, match="`Apart`.*`soft_label_weight=0`"):
        label_offset(Apart(1), batch(lambda place: True))


def test_without_labels_position_by_position_nothing_is_asked():
    inputs = batch(lambda place: True)
    del inputs["labels"]
    assert label_offset(None, inputs) == 0
    assert label_offset(None, {**inputs, "labels": torch.tensor([0, 1])}) == 0
    assert label_offset(None, {**inputs, "labels": torch.zeros(2, 3)}) == 0


def test_positions_that_predict():
    labels = torch.tensor([[-100, 3, -100, 4], [2, -100, -100, -100]])
    assert label_mask({"labels": labels}, (2, 4), None).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    assert label_mask({"labels": labels}, (2, 4), None, 1).tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]]
    # Without labels it is the tokens, whichever they predict.
    mask = torch.tensor([[1, 1, 0]])
    assert label_mask({"attention_mask": mask}, (1, 3), None, 1).tolist() == [[1, 1, 0]]
