"""Masked words for encoders without a head for them, here a small Gemma that reads both sides."""

import re

import pytest
import torch
from transformers import AutoModel, Gemma3TextModel

from hf_mwp import build_solver
from hf_mwp.commands.main import main
from hf_mwp.compress.models.masked_lm import as_masked_lm
from tests.tiny import tiny_gemma_config, tiny_processor, tiny_rows, tiny_tokenizer


def small_gemma(vocab_size: int) -> Gemma3TextModel:
    torch.manual_seed(0)
    return Gemma3TextModel(tiny_gemma_config(vocab_size, use_bidirectional_attention=True, pad_token_id=0))


@pytest.fixture
def encoder():
    return small_gemma(vocab_size=40).eval()


def test_scores_are_products_with_the_word_embeddings(encoder):
    ids = torch.tensor([[5, 6, 7, 8], [9, 5, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    labels = torch.tensor([[-100, 11, -100, -100], [12, -100, -100, -100]])
    with torch.no_grad():
        states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        by_hand = states @ encoder.embed_tokens.weight.T
        model = as_masked_lm(encoder)
        assert model is encoder and isinstance(model, Gemma3TextModel)
        every = model(input_ids=ids, attention_mask=mask, labels=labels)
        model.sparse = True
        masked = model(input_ids=ids, attention_mask=mask, labels=labels)
        given = model(input_ids=ids, attention_mask=mask, labels=labels, masked_positions=torch.tensor([1, 4]))
    torch.testing.assert_close(every.logits, by_hand)
    expected = -(by_hand[0, 1].log_softmax(0)[11] + by_hand[1, 0].log_softmax(0)[12]) / 2
    for output in (every, masked, given):
        torch.testing.assert_close(output.loss, expected)
    torch.testing.assert_close(masked.logits, torch.stack([by_hand[0, 1], by_hand[1, 0]]))


def test_what_is_saved_is_the_encoder(encoder, tmp_path):
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    as_masked_lm(encoder).save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is Gemma3TextModel and loaded.config.architectures == ["Gemma3TextModel"]
    assert loaded.state_dict().keys() == before.keys()
    for name, weight in loaded.state_dict().items():
        assert torch.equal(weight, before[name])


@pytest.fixture
def folder(tmp_path):
    tokenizer = tiny_tokenizer()
    small_gemma(len(tokenizer)).save_pretrained(tmp_path / "gemma")
    tokenizer.save_pretrained(tmp_path / "gemma")
    texts = dict.fromkeys(row["text"] for row in tiny_rows(60))
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return tmp_path


def pretrain(folder, *more):
    options = ["--encoder", "gemma", "--indexed_numbers", "true", "--max_steps", "3", "--use_cpu", "true"]
    options += ["--per_device_train_batch_size", "2", "--validation_fraction", "0.3", "--output_dir", "adapted"]
    sources = ["--corpus", "texts.txt", "--tag_cache", "tags"]
    return main(["pretrain", *sources, *options, *more])


def test_pretraining_adapts_another_type_of_encoder_and_a_solver_is_built_on_it(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert pretrain(folder, "--tagger", "none", "--pos_loss_weight", "0", "--encoder_layers", "1") == 0
    adapted = AutoModel.from_pretrained("adapted")
    assert type(adapted) is Gemma3TextModel and adapted.config.num_hidden_layers == 1
    assert adapted.embed_tokens.num_embeddings == len(tiny_processor(indexed_numbers=True).tokenizer)
    before = AutoModel.from_pretrained("gemma").layers[0].mlp.up_proj.weight
    assert not torch.equal(adapted.layers[0].mlp.up_proj.weight, before)
    solver, processor = build_solver(tiny_rows(12), encoder="adapted")
    assert processor.indexed_numbers
    assert torch.equal(solver.encoder.embed_tokens.weight, adapted.embed_tokens.weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (),
            "'gemma3_text'.* --pos_loss_weight 0",
        ),
        (("--pos_loss_weight", "0", "--project_to", "{}"), "project_to"),
    ],
)
def test_other_tasks_are_refused_before_the_corpus_is_tagged(folder, monkeypatch, capsys, options, message):
    monkeypatch.chdir(folder)
    assert pretrain(folder, *options) != 0
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
    assert not (folder / "tags").exists()
