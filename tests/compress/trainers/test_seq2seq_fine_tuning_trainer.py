"""Fine-tuning of sequence-to-sequence models."""

import logging
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import DataCollatorForSeq2Seq

from hf_mwp.compress.trainers import Seq2SeqFineTuningConfig, Seq2SeqFineTuningTrainer
from hf_mwp.compress.trainers.checkpoint_weights import ignoring_unsaved_weights
from tests.compress.trainers.distilling import copy_of, training_logs
from tests.tiny import tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_pairs, tiny_seq2seq


def train(folder, kind="bart", size=8, keywords=None, **fields):
    options = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    options |= {"save_strategy": "no", "logging_steps": 1, "warmup_steps": 0, "max_grad_norm": 0.0, "optim": "sgd"}
    options |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size, "max_decode_length": 8}
    trainer = Seq2SeqFineTuningTrainer(
        **({"model": tiny_seq2seq(kind)} | (keywords or {})),
        args=Seq2SeqFineTuningConfig(**(options | fields)),
        train_dataset=tiny_pairs(),
        eval_dataset=tiny_pairs(4, 1),
        processing_class=tiny_tokenizer(),
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", KINDS)
def test_small_batches_are_a_large_one(tmp_path, kind):
    whole, parts = (train(tmp_path, kind, size, max_steps=2, learning_rate=0.1) for size in (8, 2))
    for ours, theirs in zip(training_logs(whole), training_logs(parts), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    other = copy_of(parts.model)
    for name, value in whole.model.state_dict().items():
        assert value.flatten().tolist() == pytest.approx(other[name].flatten().tolist(), abs=1e-5), name


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_label_smoothing_needs_no_model_in_the_collator(tmp_path, kind):
    by_name = {"model": tiny_seq2seq(kind), "data_collator": DataCollatorForSeq2Seq(tiny_tokenizer(), model="name")}
    losses = []
    for keywords in (None, by_name):
        trainer = train(tmp_path, kind, keywords=keywords, max_steps=1, label_smoothing_factor=0.1)
        losses.append(training_logs(trainer)[0]["loss"])
    assert losses[0] == losses[1]


def test_another_loss_is_refused(tmp_path):
    # `Trainer` would not divide it by the number of accumulated batches.
    with pytest.raises(ValueError, match="compute_loss_func"):
        train(tmp_path, keywords={"compute_loss_func": lambda *args, **kwargs: None})


def test_the_best_checkpoint_has_the_highest_bleu(tmp_path):
    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = train(tmp_path, num_train_epochs=2, **fields)
    found = [entry["eval_bleu"] for entry in trainer.state.log_history if "eval_bleu" in entry]
    assert trainer.state.best_metric == max(found)


@pytest.mark.parametrize("kind", ["marian", "bart"])
def test_only_weights_that_are_nowhere_in_the_checkpoint_are_missing(tmp_path, kind, caplog, monkeypatch):
    """Tied embeddings are saved under one name, the positions of Marian are not saved."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = train(tmp_path, kind, num_train_epochs=1, **fields)
    assert "missing keys" not in caplog.text
    path = Path(trainer.state.best_model_checkpoint, "model.safetensors")
    weights = load_file(path)
    name = "model.encoder.layers.0.fc1.weight"
    save_file({key: value for key, value in weights.items() if key != name}, path, {"format": "pt"})
    with ignoring_unsaved_weights(trainer.model):
        trainer._load_best_model()
    assert f"missing keys in the checkpoint model loaded: [{name!r}]" in caplog.text
    (tied,) = (key for key in weights if "shared" in key or "embed_tokens" in key or key == "lm_head.weight")
    save_file({key: value for key, value in weights.items() if key != tied}, path, {"format": "pt"})
    caplog.clear()
    with ignoring_unsaved_weights(trainer.model):
        trainer._load_best_model()
    assert "missing keys" in caplog.text and tied in caplog.text
