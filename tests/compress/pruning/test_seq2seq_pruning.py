"""Heads of encoder-decoder models: gated, cut, saved, loaded in another process, and pruned while they train."""

import json

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

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
from tests.fresh_python import run_fresh


MODELS = {
    "bart": (BartConfig, BartForConditionalGeneration),
    "mbart": (MBartConfig, MBartForConditionalGeneration),
    "marian": (MarianConfig, MarianMTModel),
}
SIZES = {
    **{"vocab_size": 40, "d_model": 24, "max_position_embeddings": 32, "dropout": 0.0},
    **{"encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 20},
    **{"decoder_layers": 1, "decoder_attention_heads": 3, "decoder_ffn_dim": 12},
    **{"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": 2},
}
# Two layers of the encoder, self-attention and cross-attention of the decoder; one of them loses all heads.
GONE_HEADS = {0: [1, 3], 1: [0, 1, 2, 3], 2: [2], 3: [0]}
GONE_NEURONS = {1: [0, 5], 2: range(3)}


def tiny_seq2seq(name):
    config_class, model_class = MODELS[name]
    torch.manual_seed(0)
    model = model_class(config_class(**SIZES))
    with torch.no_grad():
        for part, parameter in model.named_parameters():
            # Sinusoidal positions are computed, not saved.
            if "embed_positions" not in part:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.eval()


def tiny_pairs(rows=3, length=9):
    generator = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(5, 40, (rows, size), generator=generator) for size in (length, length - 3))
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


LOAD = """
import json, sys, torch, hf_mwp
from transformers import AutoModelForSeq2SeqLM
model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1])
batch = {name: torch.tensor(rows) for name, rows in json.loads(sys.argv[2]).items()}
labels = batch.pop("labels")
print(json.dumps(model.generate(**batch, max_new_tokens=8).tolist()))
"""


@pytest.mark.parametrize("name", MODELS)
def test_gated_equals_cut_equals_reloaded(name, tmp_path):
    model = tiny_seq2seq(name)
    batch = tiny_pairs()
    before = logits(model, batch)
    with HeadGates(model) as heads, NeuronGates(model) as neurons:
        heads.close(GONE_HEADS)
        neurons.close(GONE_NEURONS)
        gated = logits(model, batch)
        text = generated(model, batch)
    assert torch.equal(logits(model, batch), before) and not torch.allclose(gated, before, atol=1e-3)
    cut = prune(model, GONE_HEADS, GONE_NEURONS)
    assert [each.num_heads for each in layer_parts(cut)] == [2, 0, 2, 2]
    assert cut.config.heads_per_layer == [2, 0, 2, 2] and cut.config.neurons_per_layer == [20, 18, 9, 0]
    assert cut.num_parameters() < model.num_parameters() and cut.lm_head.weight is cut.get_input_embeddings().weight
    cut.save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert type(again) is type(cut)
    for each in (cut, again):
        torch.testing.assert_close(logits(each, batch), gated, rtol=0, atol=1e-5)
        assert generated(each, batch) == text
    twice = prune_heads(prune_heads(model, {0: [1, 3], 2: [2]}), {1: [0, 1, 2, 3], 3: [0]})
    assert twice.config.cut_heads == cut.config.cut_heads


def test_another_process_generates_the_same(tmp_path):
    cut = prune_heads(tiny_seq2seq("bart"), GONE_HEADS)
    batch = tiny_pairs()
    cut.save_pretrained(tmp_path)
    given = json.dumps({key: rows.tolist() for key, rows in batch.items()})
    assert json.loads(run_fresh(tmp_path, (LOAD, tmp_path, given))[0][0][-1]) == generated(cut, batch)


def test_scores_of_all_attentions():
    model = tiny_seq2seq("bart")
    batch = tiny_pairs()
    for importance in (CombinedImportance(), AttentionEntropy(), GateGradient()):
        scores = importance.scores(model, [batch])
        assert scores.isfinite().sum(1).tolist() == [4, 4, 3, 3]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        outputs = model(**batch, output_attentions=True)
    entropy = -torch.special.xlogy(*[outputs.cross_attentions[0].double()] * 2).sum(-1)
    counted = (batch["labels"] != -100)[:, None].double()
    by_hand = (entropy * counted).sum((0, 2)) / counted.sum()
    torch.testing.assert_close(AttentionEntropy().scores(model, [batch])[3, :3], by_hand, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["mask", "slice"])
def test_heads_are_pruned_while_it_trains(mode, tmp_path):
    model = tiny_seq2seq("marian")
    batch = tiny_pairs(rows=8, length=12)
    rows = [{name: values[row] for name, values in batch.items()} for row in range(8)]
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 2, "use_cpu": True, "report_to": "none"}
    args = TrainingArguments(str(tmp_path), **options, save_strategy="no", disable_tqdm=True)
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=3, mode=mode)
    trainer = Trainer(model, args, train_dataset=rows, callbacks=[callback])
    trainer.train()
    trainer.save_model(tmp_path / "smaller")
    smaller = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "smaller").eval()
    assert sum(each.num_heads for each in layer_parts(smaller)) == 7
    torch.testing.assert_close(logits(smaller, batch), logits(trainer.model.eval(), batch), rtol=0, atol=1e-5)


def test_t5_is_refused():
    sizes = {"vocab_size": 40, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    with pytest.raises(ValueError, match="relative positions"):
        prune_heads(T5ForConditionalGeneration(T5Config(**sizes)), {0: [0]})


def test_scores_per_example_are_those_of_rows_alone():
    teacher = tiny_seq2seq("bart")
    student = tiny_seq2seq("bart")
    batch = tiny_pairs()
    with torch.no_grad():
        student.lm_head.weight.mul_(0.5)
    rows = [{name: each[row : row + 1] for name, each in batch.items()} for row in range(3)]
    fast = measure_scores(teacher, [batch], student, per_example=True)
    slow = measure_scores(teacher, rows, student)
    for name in ("expressiveness", "friendliness"):
        for units in ("heads", "neurons"):
            ours, truth = (getattr(getattr(each, name), units) for each in (fast, slow))
            torch.testing.assert_close(ours, truth, rtol=1e-3, atol=1e-5, equal_nan=True)
    # Two layers of the encoder, one of the decoder, and its cross-attention, which has no neurons.
    scores = fast.friendliness
    assert scores.neurons.isfinite().sum(1).tolist() == [20, 20, 12, 0]
    assert scores.heads.isfinite().sum(1).tolist() == [4, 4, 3, 3] and (scores.heads.nan_to_num(1) > 0).all()
