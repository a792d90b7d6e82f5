"""Heads of encoder-decoder models: gated, cut, saved, loaded, and pruned while they train."""

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments

from hf_mwp import HeadPruningCallback, prune_heads
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import (
    AttentionEntropy,
    CombinedImportance,
    GateGradient,
    HeadGates,
    NeuronGates,
    measure_scores,
    prune,
)
from tests.compress.pruning.encoders import examples_of, rows_of, score_tables
from tests.slow_parameters import slow_after
from tests.tiny_seq2seq import tiny_seq2seq as seq2seq


SIZES = {
    **{"vocab_size": 40, "max_position_embeddings": 32, "width": 24, "decoder_layers": 1, "init_std": 0.1},
    **{"encoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_attention_heads": 3, "decoder_ffn_dim": 12},
    **{"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": 2},
}
# Two layers of the encoder, self-attention and cross-attention of the decoder; one of them loses all heads.
CUT_HEADS = {0: [1, 3], 1: [0, 1, 2, 3], 2: [2], 3: [0]}
CUT_NEURONS = {1: [0, 5], 2: range(3)}


def tiny_seq2seq(name):
    model = seq2seq(name, **SIZES)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            # Sinusoidal positions are computed, not saved.
            if "embed_positions" not in parameter_name:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def tiny_pairs(rows=3, length=9):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 40, (rows, length), generator=generator)
    labels = torch.randint(5, 40, (rows, length - 3), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(1, rows):
        mask[row, length - 2 * row :] = 0
        labels[row, length - 3 - row :] = -100
    return {"input_ids": ids.masked_fill(mask == 0, 1), "attention_mask": mask, "labels": labels}


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


def generated(model, batch):
    return model.generate(batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=8).tolist()


@pytest.mark.parametrize("name", slow_after(1, ["bart", "mbart", "marian"]))
def test_gated_equals_cut_equals_reloaded(name, tmp_path):
    model = tiny_seq2seq(name)
    batch = tiny_pairs()
    before = logits(model, batch)
    with HeadGates(model) as head_gates, NeuronGates(model) as neuron_gates:
        head_gates.close(CUT_HEADS)
        neuron_gates.close(CUT_NEURONS)
        gated = logits(model, batch)
        text = generated(model, batch)
    assert torch.equal(logits(model, batch), before) and not torch.allclose(gated, before, atol=1e-3)
    cut = prune(model, CUT_HEADS, CUT_NEURONS)
    assert [layer.num_heads for layer in layer_parts(cut)] == cut.config.heads_per_layer == [2, 0, 2, 2]
    assert cut.config.neurons_per_layer == [20, 18, 9, 0]
    assert cut.num_parameters() < model.num_parameters()
    assert cut.lm_head.weight is cut.get_input_embeddings().weight
    cut.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert type(loaded) is type(cut)
    for model_without_gates in (cut, loaded):
        torch.testing.assert_close(logits(model_without_gates, batch), gated, rtol=0, atol=1e-5)
        assert generated(model_without_gates, batch) == text
    twice = prune_heads(prune_heads(model, {0: [1, 3], 2: [2]}), {1: [0, 1, 2, 3], 3: [0]})
    assert twice.config.cut_heads == cut.config.cut_heads


@pytest.mark.parametrize("name", slow_after(1, ["bart", "marian"]))
def test_decoder_whose_first_layer_has_no_heads_generates(name):
    model = seq2seq(name, **SIZES | {"decoder_layers": 2})
    batch = tiny_pairs()
    with HeadGates(model) as gates:
        gates.close({2: [0, 1, 2]})
        gated = logits(model, batch)
        text = generated(model, batch)
    cut = prune_heads(model, {2: [0, 1, 2]})
    torch.testing.assert_close(logits(cut, batch), gated, rtol=0, atol=1e-5)
    assert generated(cut, batch) == text


@pytest.mark.parametrize("importance", [CombinedImportance(), AttentionEntropy(), GateGradient()], ids=repr)
def test_all_attentions_are_scored(importance):
    scores = importance.scores(tiny_seq2seq("bart"), [tiny_pairs()])
    assert scores.isfinite().sum(1).tolist() == [4, 4, 3, 3]


def test_entropy_of_cross_attention_by_hand():
    model = tiny_seq2seq("bart")
    batch = tiny_pairs()
    scores = AttentionEntropy().scores(model, [batch])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attention = model(**batch, output_attentions=True).cross_attentions[0].double()
    entropy = -torch.special.xlogy(attention, attention).sum(-1)
    is_label = (batch["labels"] != -100)[:, None].double()
    expected = (entropy * is_label).sum((0, 2)) / is_label.sum()
    torch.testing.assert_close(scores[3, :3], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", slow_after(1, ["mask", "slice"]))
def test_heads_are_pruned_while_it_trains(mode, tmp_path):
    batch = tiny_pairs(rows=8, length=12)
    options = {"max_steps": 3, "per_device_train_batch_size": 2, "use_cpu": True, "report_to": "none"}
    args = TrainingArguments(str(tmp_path), **options, save_strategy="no", disable_tqdm=True)
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=3, mode=mode)
    trainer = Trainer(tiny_seq2seq("marian"), args, train_dataset=examples_of(batch), callbacks=[callback])
    trainer.train()
    trainer.save_model(tmp_path / "smaller")
    smaller = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "smaller").eval()
    assert sum(layer.num_heads for layer in layer_parts(smaller)) == 7
    torch.testing.assert_close(logits(smaller, batch), logits(trainer.model.eval(), batch), rtol=0, atol=1e-5)


def test_t5_raises():
    with pytest.raises(ValueError, match="relative positions"):
        prune_heads(seq2seq("t5"), {0: [0]})


def test_scores_per_example_equal_those_of_single_rows():
    teacher = tiny_seq2seq("bart")
    student = tiny_seq2seq("bart")
    batch = tiny_pairs()
    with torch.no_grad():
        student.lm_head.weight.mul_(0.5)
    per_example = measure_scores(teacher, [batch], student, per_example=True)
    loop = measure_scores(teacher, rows_of([batch]), student)
    torch.testing.assert_close(score_tables(per_example), score_tables(loop), rtol=1e-3, atol=1e-5, equal_nan=True)
    # Two layers of the encoder, one of the decoder, and its cross-attention, which has no neurons.
    scores = per_example.friendliness
    assert scores.neurons.isfinite().sum(1).tolist() == [20, 20, 12, 0]
    assert scores.heads.isfinite().sum(1).tolist() == [4, 4, 3, 3] and (scores.heads.nan_to_num(1) > 0).all()
