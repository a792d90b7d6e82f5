"""Fine-tuning of sequence-to-sequence models."""

import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import DataCollatorForSeq2Seq

from hf_mwp.compress.trainers import Seq2SeqFineTuningConfig, Seq2SeqFineTuningTrainer
from hf_mwp.compress.trainers.checkpoint_weights import ignoring_unsaved_weights
from tests.compress.trainers.distilling import PLAIN_SGD, training_logs
from tests.slow_parameters import slow_after
from tests.tiny import tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


FIELDS = PLAIN_SGD | {
    "max_decode_length": 8,
    "per_device_train_batch_size": 8,
}
BEST = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}


def trained(folder, architecture="bart", keywords=None, **fields):
    """A trainer that has trained."""
    trainer = Seq2SeqFineTuningTrainer(
        tiny_seq2seq(architecture),
        args=Seq2SeqFineTuningConfig(str(folder), **(FIELDS | fields)),
        train_dataset=tiny_pairs(),
        eval_dataset=tiny_pairs(4, 1),
        processing_class=tiny_tokenizer(),
        **(keywords or {}),
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("architecture", slow_after(1, ["bart", "t5"]))
def test_accumulated_batches_equal_one_batch(tmp_path, architecture):
    one_batch = trained(tmp_path, architecture, max_steps=2)
    fields = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "max_steps": 2}
    accumulated = trained(tmp_path, architecture, **fields)
    for entry, expected in zip(training_logs(accumulated), training_logs(one_batch), strict=True):
        assert entry["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    weights = accumulated.model.state_dict()
    for name, value in one_batch.model.state_dict().items():
        torch.testing.assert_close(weights[name], value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", slow_after(1, ["bart", "t5"]))
def test_label_smoothing_needs_no_model_in_the_collator(tmp_path, architecture):
    without_model = {"data_collator": DataCollatorForSeq2Seq(tiny_tokenizer(), model="name")}
    losses = []
    for keywords in (None, without_model):
        trainer = trained(tmp_path, architecture, keywords, max_steps=1, label_smoothing_factor=0.1)
        losses.append(training_logs(trainer)[0]["loss"])
    assert losses[0] == losses[1]


def test_another_loss_function_is_refused(tmp_path):
    # `Trainer` would not divide it by the number of accumulated batches.
    with pytest.raises(ValueError, match="compute_loss_func"):
        trained(tmp_path, keywords={"compute_loss_func": lambda *args, **kwargs: None})


@pytest.mark.parametrize("architecture", slow_after(1, ["marian", "bart"]))
def test_only_weights_that_are_nowhere_in_the_checkpoint_are_missing(tmp_path, architecture, caplog, monkeypatch):
    """Tied embeddings are saved under one name, the positions of Marian are not saved."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    trainer = trained(tmp_path, architecture, num_train_epochs=1, **BEST)
    assert "missing keys" not in caplog.text
    path = Path(trainer.state.best_model_checkpoint, "model.safetensors")
    weights = load_file(path)
    (tied,) = [name for name in weights if "shared" in name or "embed_tokens" in name or name == "lm_head.weight"]
    for name in ("model.encoder.layers.0.fc1.weight", tied):
        caplog.clear()
        save_file({key: value for key, value in weights.items() if key != name}, path, {"format": "pt"})
        with ignoring_unsaved_weights(trainer.model):
            trainer._load_best_model()
        assert "missing keys in the checkpoint model loaded: [" in caplog.text
        assert name in caplog.text
    assert "fc1" not in caplog.text
