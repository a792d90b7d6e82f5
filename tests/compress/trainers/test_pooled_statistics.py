"""CKA over accumulated batches and over processes."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hf_mwp import Seq2SeqDistillationConfig, Seq2SeqDistillationTrainer
from hf_mwp.compress.distillation.objectives import HiddenStates
from tests.compress.trainers.distilling import (
    PLAIN_SGD,
    first_losses,
    losses_of,
    same_weights,
    training_logs,
)
from tests.compress.trainers.processes import launch, train_and_write
from tests.slow_parameters import slow_after
from tests.tiny import tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


FIELDS = PLAIN_SGD | {
    "lr_scheduler_type": "constant",
    "max_steps": 2,
    "max_decode_length": 5,
    "pool_statistics": True,
}


def trainer_of(folder, size, steps=1, dropout=0.0, **fields):
    fields |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
    return Seq2SeqDistillationTrainer(
        tiny_seq2seq(dropout=dropout),
        teacher_model=tiny_seq2seq(width=24, encoder_layers=4, seed=1),
        args=Seq2SeqDistillationConfig(str(folder), **(FIELDS | fields)),
        train_dataset=tiny_pairs(16),
        eval_dataset=tiny_pairs(3, 1),
        processing_class=tiny_tokenizer(),
    )


def train_pooled(run):
    """Trains as a process of its own."""
    return train_and_write(trainer_of(run["output_dir"], 4, ddp_backend="gloo"), run)


@pytest.fixture(scope="module")
def one_batch(tmp_path_factory):
    """A trainer that has trained with batches of a whole step."""
    trainer = trainer_of(tmp_path_factory.mktemp("one_batch"), 8)
    trainer.train()
    return trainer


def assert_same(logs, weights, expected):
    for entry, expected_entry in zip(logs, training_logs(expected), strict=True):
        assert losses_of(entry) == pytest.approx(losses_of(expected_entry), rel=2e-5)
    for name, value in weights.items():
        torch.testing.assert_close(value, expected.model.state_dict()[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", slow_after(1, [4, 2]))
def test_accumulated_batches_equal_one_batch(one_batch, tmp_path, size):
    trainer = trainer_of(tmp_path, size, 8 // size)
    trainer.train()
    assert_same(training_logs(trainer), trainer.model.state_dict(), one_batch)


@pytest.mark.slow
def test_statistics_are_pooled_with_a_cache_and_not_without_the_option(one_batch, tmp_path):
    expected = training_logs(one_batch)[0]["loss_hidden_2"]
    cached = first_losses(trainer_of(tmp_path, 2, 4, cache_teacher_outputs=True, max_steps=1))
    assert cached["loss_hidden_2"] == pytest.approx(expected, rel=1e-3)
    separate = first_losses(trainer_of(tmp_path, 2, 4, pool_statistics=False, max_steps=1))
    assert abs(separate["loss_hidden_2"] - expected) > 0.02


@pytest.mark.slow
def test_two_processes_equal_one_batch(one_batch, tmp_path):
    run = {"output_dir": str(tmp_path / "two"), "result": str(tmp_path / "two.json")}
    ended = launch(train_pooled, [run], processes=2)
    assert ended.returncode == 0, ended.stderr[-3000:]
    result = json.loads(Path(run["result"]).read_text("utf-8"))
    logs = [entry for entry in result["log"] if "loss" in entry]
    assert_same(logs, load_file(tmp_path / "two" / "model.safetensors"), one_batch)
    assert result["metrics"]["eval_bleu"] == pytest.approx(one_batch.evaluate()["eval_bleu"])


def test_both_passes_have_the_same_dropout(tmp_path, monkeypatch):
    recorded = []
    statistics = HiddenStates.statistics

    def recording_statistics(self, *args):
        sums = statistics(self, *args)
        recorded.append((self.name, sums[f"{self.name}_1"][1].detach()))
        return sums

    monkeypatch.setattr(HiddenStates, "statistics", recording_statistics)
    trainer_of(tmp_path, 4, 2, dropout=0.2, max_steps=1).train()
    assert len(recorded) == 8
    for (first_name, first_sums), (second_name, second_sums) in zip(recorded[:4], recorded[4:], strict=True):
        assert first_name == second_name
        assert torch.equal(first_sums, second_sums)


def test_losses_that_are_no_sums_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`pool_statistics`.*cka"):
        trainer_of(tmp_path, 4, hidden_loss="mse")


@pytest.mark.slow
def test_a_training_with_dropout_resumes_to_the_same_weights(tmp_path):
    fields = {"dropout": 0.3, "save_strategy": "steps", "save_steps": 1}
    uninterrupted = trainer_of(tmp_path, 2, 2, **fields)
    uninterrupted.train()
    resumed = trainer_of(tmp_path, 2, 2, **fields)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert same_weights(uninterrupted.model, resumed.model)
