"""CKA over accumulated batches and over processes."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hf_mwp import Seq2SeqDistillationConfig, Seq2SeqDistillationTrainer
from hf_mwp.compress.distillation.objectives import HiddenStates
from hf_mwp.compress.losses import CKALoss
from tests.compress.trainers.distilling import pad, training_logs
from tests.compress.trainers.processes import launch, train_and_write
from tests.tiny import tiny_classifier_rows, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


def make(folder, size, steps=1, dropout=0.0, pool=True, **fields):
    options = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    options |= {"save_strategy": "no", "logging_steps": 1, "warmup_steps": 0, "max_grad_norm": 0.0, "optim": "sgd"}
    options |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps, "max_decode_length": 5}
    options |= {"learning_rate": 0.1, "max_steps": 2, "pool_statistics": pool, "lr_scheduler_type": "constant"}
    return Seq2SeqDistillationTrainer(
        tiny_seq2seq(dropout=dropout),
        teacher_model=tiny_seq2seq(width=24, encoder_layers=4, seed=1),
        args=Seq2SeqDistillationConfig(**(options | fields)),
        train_dataset=tiny_pairs(16),
        eval_dataset=tiny_pairs(3, 1),
        processing_class=tiny_tokenizer(),
    )


def train_pooled(run):
    """Trains as a process of its own."""
    return train_and_write(make(run["output_dir"], 4, ddp_backend="gloo"), run)


def assert_same(logs, weights, expected):
    names = [name for name in training_logs(expected)[0] if name.startswith("loss")]
    for ours, theirs in zip(logs, training_logs(expected), strict=True):
        assert [ours[name] for name in names] == pytest.approx([theirs[name] for name in names], rel=2e-5)
    for name, value in expected.model.state_dict().items():
        torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    trainer = make(tmp_path_factory.mktemp("whole"), 8)
    trainer.train()
    return trainer


@pytest.mark.parametrize("fields", [{}, {"cache_teacher_outputs": True}])
def test_accumulated_batches_are_one(whole, tmp_path, fields):
    for size in (4, 2):
        trainer = make(tmp_path, size, 8 // size, **fields)
        trainer.train()
        if not fields:
            assert_same(training_logs(trainer), trainer.model.state_dict(), whole)
    separate = make(tmp_path, 2, 4, pool=False)
    separate.train()
    parts = [training_logs(each)[0]["loss_hidden_2"] for each in (trainer, whole, separate)]
    assert parts[0] == pytest.approx(parts[1], rel=1e-3) and abs(parts[2] - parts[1]) > 0.02


def test_two_processes_are_one(whole, tmp_path):
    run = {"output_dir": str(tmp_path / "two"), "result": str(tmp_path / "two.json")}
    done = launch(train_pooled, [run], processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads(Path(run["result"]).read_text("utf-8"))
    weights = load_file(tmp_path / "two" / "model.safetensors")
    logs = [entry for entry in got["log"] if "loss" in entry]
    assert_same(logs, {name: weights.get(name, value) for name, value in whole.model.state_dict().items()}, whole)
    assert got["metrics"]["eval_bleu"] == pytest.approx(whole.evaluate()["eval_bleu"])


def test_the_first_pass_sees_the_dropout_of_the_second(tmp_path, monkeypatch):
    seen = []
    statistics = HiddenStates.statistics

    def note(self, *args):
        sums = statistics(self, *args)
        seen.append((self.name, sums[f"{self.name}_1"][1].detach()))
        return sums

    monkeypatch.setattr(HiddenStates, "statistics", note)
    make(tmp_path, 4, 2, dropout=0.2, max_steps=1).train()
    first = seen[:4]
    second = seen[4:]
    assert [name for name, _ in first] == [name for name, _ in second] and len(second) == 4
    for (_, ours), (_, theirs) in zip(first, second, strict=True):
        assert torch.equal(ours, theirs)


def test_evaluation_rows_without_labels_have_their_own_loss(others):
    rows = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in tiny_classifier_rows()]
    fields = {"hidden_loss": "cka", "pool_statistics": True, "prediction_weight": 0.0, "embedding_weight": 0.0}
    trainer = others(rows=rows, eval_rows=rows[:6], gradient_accumulation_steps=2, layer_mapping="2:4", **fields)
    trainer.train()
    models = trainer.model, trainer.teacher_model
    with torch.no_grad():
        states = [each.eval()(**pad(rows[:6]), output_hidden_states=True).hidden_states[-1] for each in models]
    expected = CKALoss()(*states, pad(rows[:6])["attention_mask"]).item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-5)


def test_losses_that_are_no_sums_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`pool_statistics`.*cka"):
        make(tmp_path, 4, hidden_loss="mse")


def test_a_training_with_dropout_resumes_to_the_same_numbers(tmp_path):
    fields = {"dropout": 0.3, "save_strategy": "steps", "save_steps": 1, "max_steps": 3}
    whole, again = (make(tmp_path, 2, 2, **fields) for _ in range(2))
    whole.train()
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
