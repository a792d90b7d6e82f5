"""Objectives on decoders: what they read, which positions count, and models without what they need."""

from functools import partial

import pytest
import torch
from torch.nn import functional
from transformers import LEDConfig, LEDForConditionalGeneration

from hf_mwp.compress.distillation.features import Features, attention_inputs, read_features
from hf_mwp.compress.distillation.objectives import (
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    EmbeddingOutputs,
    HiddenStates,
)
from hf_mwp.compress.losses import CKALoss, HiddenMSELoss
from hf_mwp.compress.models.cut_model import NoHeads
from hf_mwp.compress.pruning import prune_heads
from tests.compress.trainers.distilling import eager, pad, set_up
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


OPTIONS = {"output_hidden_states": True, "output_attentions": True}
TABLE = {
    "hidden": partial(HiddenStates, CKALoss()),
    "embedding": EmbeddingOutputs,
    "flow": FSP,
    "context": ContextRelations,
    "attention": AttentionMaps,
    "cross": lambda stack: AttentionMaps(stack="cross"),
    "relations": AttentionRelations,
}


@pytest.fixture
def inputs():
    return pad(tiny_pairs(3))


def losses_of_models(objective, student, teacher, inputs):
    student_features = read_features(student, inputs, OPTIONS, objective.student_reads)
    with torch.no_grad():
        teacher_features = read_features(teacher, inputs, OPTIONS, objective.teacher_reads)
    return objective.losses(student_features, teacher_features, inputs)


@pytest.mark.parametrize("architecture", ["bart", "t5"])
@pytest.mark.parametrize("name", slow_after(2, TABLE))
def test_each_objective_reads_the_decoder_alone(architecture, name, inputs):
    student = eager(tiny_seq2seq(architecture))
    teacher = eager(tiny_seq2seq(architecture, 16, 2, 4, seed=1))
    objective = TABLE[name](stack="decoder")
    set_up(objective, student, teacher, inputs)
    for feature in (*objective.student_reads, *objective.teacher_reads):
        assert feature.startswith(("decoder_", "cross_"))
    losses = losses_of_models(objective, student, teacher, inputs)
    assert all(value > 0 for value in losses.values())
    sum(losses.values()).backward()
    assert student.get_decoder().get_input_embeddings().weight.grad.abs().sum() > 0
    # Positions without a label do not matter.
    padded = {**inputs, "labels": functional.pad(inputs["labels"], (0, 2), value=-100)}
    padded_losses = losses_of_models(objective, student, teacher, padded)
    for part, value in losses.items():
        assert padded_losses[part].item() == pytest.approx(value.item(), rel=1e-4), part


@pytest.mark.parametrize("decoder_mask", ["labels", "shifted"])
def test_states_of_the_decoder_are_compared_at_their_mask(decoder_mask, inputs):
    mask = inputs["labels"] != -100
    if decoder_mask == "shifted":
        mask = functional.pad(mask[:, :-1], (1, 0))
    objective = HiddenStates(stack="decoder", decoder_mask=decoder_mask, name="d")
    student, teacher = set_up(objective, tiny_seq2seq(), tiny_seq2seq(seed=1), inputs)
    losses = objective.losses(student, teacher, inputs)
    for layer in (1, 2):
        student_states = student[f"decoder_hidden_{layer}"]
        teacher_states = teacher[f"decoder_hidden_{layer}"]
        assert losses[f"d_{layer}"] == HiddenMSELoss()(student_states, teacher_states, mask)
    assert objective.num_items(inputs)["d_1"] == mask.sum()
    assert objective.cacheable == (decoder_mask == "labels")


@pytest.mark.parametrize("objective", [AttentionMaps(stack="decoder"), AttentionRelations(stack="decoder", heads=1)])
def test_pruned_heads_of_a_decoder_are_not_compared(objective, inputs):
    student = eager(tiny_seq2seq())
    teacher = eager(tiny_seq2seq())
    prune_heads(student, {2: [0]})  # the decoder's first layer, after two of the encoder
    assert not any(isinstance(module, NoHeads) for module in student.modules())
    set_up(objective, student, teacher, inputs)
    first, _ = losses_of_models(objective, student, teacher, inputs).values()
    assert first.item() == pytest.approx(0, abs=1e-6)
    assert len(attention_inputs(student, "decoder")) == 2


def led():
    sizes = {"vocab_size": len(tiny_tokenizer()), "d_model": 16, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "attention_window": 4, "pad_token_id": 0}
    return LEDForConditionalGeneration(LEDConfig(**sizes, **heads, encoder_ffn_dim=24, decoder_ffn_dim=24)).eval()


@pytest.mark.parametrize("make_objective", [AttentionMaps, AttentionRelations])
def test_attention_within_windows_is_refused(make_objective, inputs):
    features = Features(eager(tiny_seq2seq())(**inputs, **OPTIONS), model=led())
    with pytest.raises(ValueError, match="LEDForConditionalGeneration.*windows"):
        make_objective().setup(features, features, inputs)


def test_a_decoder_that_cannot_be_compared_is_named(inputs):
    classifier = tiny_classifier(vocab_size=len(tiny_tokenizer()))
    encoder_inputs = {"input_ids": inputs["input_ids"]}
    with pytest.raises(ValueError, match="BertForSequenceClassification.*decoder"):
        set_up(HiddenStates(stack="decoder"), classifier, classifier, encoder_inputs)
    with pytest.raises(ValueError, match="PKD.*decoder"):
        PKD(stack="decoder")
    with pytest.raises(ValueError, match="decoder_mask.*'right'"):
        HiddenStates(stack="decoder", decoder_mask="right")
    features = Features(tiny_seq2seq()(**inputs, **OPTIONS), model=tiny_seq2seq())
    with pytest.raises(ValueError, match="`labels`"):
        HiddenStates(stack="decoder").setup(features, features, encoder_inputs)
