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
from hf_mwp.compress.distillation.objectives.objective import TeacherRequest
from hf_mwp.compress.distillation.teacher_cache import OutputLayout
from hf_mwp.compress.losses import CKALoss, HiddenMSELoss
from hf_mwp.compress.models.cut_model import NoHeads
from hf_mwp.compress.pruning import prune_heads
from tests.tiny import tiny_classifier, tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_pairs, tiny_seq2seq


OPTIONS = {"output_hidden_states": True, "output_attentions": True}
TABLE = {
    "hidden": lambda **kwargs: HiddenStates(CKALoss(), **kwargs),
    "embedding": EmbeddingOutputs,
    "flow": FSP,
    "context": ContextRelations,
    "attention": AttentionMaps,
    "cross": lambda stack, **kwargs: AttentionMaps(stack="cross", **kwargs),
    "relations": AttentionRelations,
}


def batch(count=3):
    rows = tiny_pairs(count)
    size = {name: max(len(row[name]) for row in rows) for name in rows[0]}
    padding = {"input_ids": 0, "attention_mask": 0, "labels": -100}
    return {
        name: torch.tensor([row[name] + [padding[name]] * (size[name] - len(row[name])) for row in rows])
        for name in rows[0]
    }


def features(model, inputs, reads=()):
    model.set_attn_implementation("eager")
    found = read_features(model, inputs, OPTIONS, reads)
    found.model = model
    return found


def planned(make, student, teacher, inputs):
    objective = make(stack="decoder")
    with torch.no_grad():
        objective.setup(features(student, inputs), features(teacher, inputs), inputs)
    return objective


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TABLE)
def test_each_objective_reads_the_decoder_alone(kind, name):
    inputs = batch()
    student = tiny_seq2seq(kind)
    teacher = tiny_seq2seq(kind, 16, 2, 4, seed=1)
    objective = planned(TABLE[name], student, teacher, inputs)
    assert all(
        read.startswith(("decoder_", "cross_")) for read in (*objective.student_reads, *objective.teacher_reads)
    )
    ours = features(student, inputs, objective.student_reads)
    with torch.no_grad():
        theirs = features(teacher, inputs, objective.teacher_reads)
    losses = objective.losses(ours, theirs, inputs)
    assert all(value > 0 for value in losses.values())
    sum(losses.values()).backward()
    assert student.get_decoder().get_input_embeddings().weight.grad.abs().sum() > 0
    # What stands where no label is does not matter.
    longer = {**inputs, "labels": functional.pad(inputs["labels"], (0, 2), value=-100)}
    ours = features(student, longer, objective.student_reads)
    with torch.no_grad():
        theirs = features(teacher, longer, objective.teacher_reads)
    again = objective.losses(ours, theirs, longer)
    for part, value in losses.items():
        assert again[part].item() == pytest.approx(value.item(), rel=1e-4), part


def test_states_of_the_decoder_and_their_mask():
    inputs = batch()
    losses = {}
    student = tiny_seq2seq()
    teacher = tiny_seq2seq(seed=1)
    ours = features(student, inputs)
    theirs = features(teacher, inputs)
    valid = inputs["labels"] != -100
    masks = {"labels": valid, "shifted": functional.pad(valid[:, :-1], (1, 0))}
    for kind, mask in masks.items():
        objective = HiddenStates(stack="decoder", decoder_mask=kind, name="d")
        objective.setup(ours, theirs, inputs)
        losses = objective.losses(ours, theirs, inputs)
        for layer in (1, 2):
            pair = (each.output.decoder_hidden_states[layer] for each in (ours, theirs))
            assert losses[f"d_{layer}"] == HiddenMSELoss()(*pair, mask)
        assert objective.num_items(inputs)["d_1"] == mask.sum()
        assert objective.cacheable == (kind == "labels")


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_a_cached_row_is_the_decoders_own(kind):
    model = tiny_seq2seq(kind)
    inputs = batch()
    objective = AttentionRelations(stack="decoder")
    objective.setup(features(model, inputs), features(tiny_seq2seq(kind, seed=1), inputs), inputs)
    found = features(model, inputs, objective.teacher_reads)
    request = TeacherRequest.of([objective])
    layout = OutputLayout.of(found, request)
    restored = layout.restore(layout.assemble(layout.pack(found, inputs), inputs), torch.float32)
    valid = inputs["labels"] != -100
    for name in objective.teacher_reads:
        torch.testing.assert_close(restored[name][valid], found[name][valid], rtol=1e-3, atol=1e-3)


def test_pruned_heads_of_a_decoder_take_no_part():
    inputs = batch()
    student = tiny_seq2seq()
    teacher = tiny_seq2seq()
    prune_heads(student, {2: [0]})  # the decoder's first layer, after two of the encoder
    assert not any(isinstance(module, NoHeads) for module in student.modules())
    for make in (AttentionMaps, partial(AttentionRelations, heads=1)):
        objective = planned(make, student, teacher, inputs)
        ours = features(student, inputs, objective.student_reads)
        theirs = features(teacher, inputs, objective.teacher_reads)
        first, _ = objective.losses(ours, theirs, inputs).values()
        assert first.item() == pytest.approx(0, abs=1e-6)
    assert len(attention_inputs(student, "decoder")) == 2


def led():
    sizes = {"vocab_size": len(tiny_tokenizer()), "d_model": 16, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "attention_window": 4, "pad_token_id": 0}
    return LEDForConditionalGeneration(LEDConfig(**sizes, **heads, encoder_ffn_dim=24, decoder_ffn_dim=24)).eval()


@pytest.mark.parametrize("make", [AttentionMaps, AttentionRelations])
def test_attention_within_windows_is_refused(make):
    model = led()
    inputs = batch()
    output = Features(tiny_seq2seq()(**inputs, **OPTIONS), model=model)
    with pytest.raises(ValueError, match="LEDForConditionalGeneration.*windows"):
        make().setup(output, output, inputs)


def test_what_a_decoder_lacks_is_named():
    inputs = batch()
    model = tiny_classifier(vocab_size=len(tiny_tokenizer()))
    encoder = features(model, {name: inputs[name] for name in ("input_ids", "attention_mask")})
    with pytest.raises(ValueError, match="BertForSequenceClassification.*decoder"):
        HiddenStates(stack="decoder").setup(encoder, encoder, inputs)
    with pytest.raises(ValueError, match="PKD.*decoder"):
        PKD(stack="decoder")
    with pytest.raises(ValueError, match="decoder_mask.*'right'"):
        HiddenStates(stack="decoder", decoder_mask="right")
    found = features(tiny_seq2seq(), inputs)
    with pytest.raises(ValueError, match="`labels`"):
        HiddenStates(stack="decoder").setup(found, found, {"input_ids": inputs["input_ids"]})
