"""Masked language modelling of encoders without a head for it, here a small Gemma that reads both sides."""

import pytest
import torch
from transformers import AutoModel, Gemma3TextModel

from hf_mwp import build_solver
from hf_mwp.commands.main import main
from hf_mwp.compress.models.masked_lm import as_masked_lm
from tests.tiny import tiny_gemma_config, tiny_processor, tiny_rows, tiny_tokenizer


def small_gemma(vocab_size=40):
    torch.manual_seed(0)
    config = tiny_gemma_config(vocab_size, use_bidirectional_attention=True, pad_token_id=0)
    return Gemma3TextModel(config).eval()


def test_logits_are_products_with_the_word_embeddings():
    encoder = small_gemma()
    batch = {
        "input_ids": torch.tensor([[5, 6, 7, 8], [9, 5, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    labels = torch.tensor([[-100, 11, -100, -100], [12, -100, -100, -100]])
    with torch.no_grad():
        logits = encoder(**batch).last_hidden_state @ encoder.embed_tokens.weight.T
        model = as_masked_lm(encoder)
        dense = model(**batch, labels=labels)
        model.sparse = True
        sparse = model(**batch, labels=labels)
        with_positions = model(**batch, labels=labels, masked_positions=torch.tensor([1, 4]))
    assert model is encoder and isinstance(model, Gemma3TextModel)
    torch.testing.assert_close(dense.logits, logits)
    torch.testing.assert_close(sparse.logits, torch.stack([logits[0, 1], logits[1, 0]]))
    expected = -(logits[0, 1].log_softmax(0)[11] + logits[1, 0].log_softmax(0)[12]) / 2
    for output in (dense, sparse, with_positions):
        torch.testing.assert_close(output.loss, expected)


def test_encoder_is_saved(tmp_path):
    encoder = small_gemma()
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    as_masked_lm(encoder).save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is Gemma3TextModel and loaded.config.architectures == ["Gemma3TextModel"]
    torch.testing.assert_close(dict(loaded.state_dict()), before, rtol=0, atol=0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with texts and an encoder."""
    tokenizer = tiny_tokenizer()
    small_gemma(len(tokenizer)).save_pretrained(tmp_path / "gemma")
    tokenizer.save_pretrained(tmp_path / "gemma")
    texts = dict.fromkeys(row["text"] for row in tiny_rows(60))
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pretrain(*options):
    training = ["--encoder", "gemma", "--indexed_numbers", "true", "--max_steps", "2", "--use_cpu", "true"]
    training += ["--per_device_train_batch_size", "2", "--validation_fraction", "0.3", "--output_dir", "adapted"]
    return main(["pretrain", "--corpus", "texts.txt", "--tag_cache", "tags", *training, *options])


def test_pretraining_adapts_an_encoder_of_another_type(folder):
    assert pretrain("--tagger", "none", "--pos_loss_weight", "0", "--encoder_layers", "1") == 0
    adapted = AutoModel.from_pretrained("adapted")
    assert type(adapted) is Gemma3TextModel and adapted.config.num_hidden_layers == 1
    assert adapted.embed_tokens.num_embeddings == len(tiny_processor(indexed_numbers=True).tokenizer)
    before = AutoModel.from_pretrained("gemma").layers[0].mlp.up_proj.weight
    assert not torch.equal(adapted.layers[0].mlp.up_proj.weight, before)
    solver, processor = build_solver(tiny_rows(12), encoder="adapted")
    assert processor.indexed_numbers
    assert torch.equal(solver.encoder.embed_tokens.weight, adapted.embed_tokens.weight)


@pytest.mark.parametrize(
    ("options", "name"), [((), "--pos_loss_weight"), (("--pos_loss_weight", "0", "--project_to", "{}"), "project_to")]
)
def test_other_tasks_fail_before_the_corpus_is_tagged(options, name, folder, capsys):
    assert pretrain(*options) != 0
    assert name in capsys.readouterr().err
    assert not (folder / "tags").exists()
