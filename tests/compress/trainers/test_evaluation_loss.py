"""The loss of evaluations, which does not depend on the size of their batches."""

import json
from pathlib import Path

import pytest
import torch
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

from hf_mwp.compress.distillation.objectives import HardLabels
from hf_mwp.compress.trainers import (
    DistillationConfig,
    DistillationTrainer,
    Seq2SeqFineTuningConfig,
    Seq2SeqFineTuningTrainer,
)
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from tests.compress.trainers.distilling import QUIET, masked_lm_rows, pad
from tests.compress.trainers.processes import launch
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_masked_lm, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


def mean_over_labels(model, rows):
    losses = []
    for row in rows:
        with torch.no_grad():
            log_probabilities = model.eval()(**pad([row])).logits[0].log_softmax(-1)
        for position, label in enumerate(row["labels"]):
            if label != -100:
                losses.append(-log_probabilities[position, label].item())
    return sum(losses) / len(losses)


def evaluation_loss(model, rows, folder, size):
    args = BaseConfig(str(folder), **QUIET, per_device_eval_batch_size=size)
    return BaseTrainer(model, args, pad, rows, rows).evaluate()["eval_loss"]


@pytest.mark.parametrize("size", slow_except([1, 3], 3))
@pytest.mark.parametrize("unlabelled", [(), (1, 6)])
def test_the_loss_is_a_mean_over_labels(tmp_path, size, unlabelled):
    rows = masked_lm_rows(7, unlabelled)
    model = tiny_masked_lm(initializer_range=0.5)
    expected = mean_over_labels(model, rows)
    assert evaluation_loss(model, rows, tmp_path, size) == pytest.approx(expected, rel=1e-5)
    args = DistillationConfig(str(tmp_path), **QUIET, per_device_eval_batch_size=size)
    trainer = DistillationTrainer(model, tiny_masked_lm(1), args, pad, rows, {"a": rows, "b": rows[:3]})
    metrics = trainer.evaluate()
    assert metrics["eval_a_loss"] == pytest.approx(expected, rel=1e-5)
    assert metrics["eval_b_loss"] == pytest.approx(mean_over_labels(model, rows[:3]), rel=1e-5)
    assert trainer.predict(rows).metrics["test_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", slow_after(1, [3, 8]))
def test_the_loss_of_generated_texts_is_a_mean_over_labels(tmp_path, size):
    model = tiny_seq2seq()
    tokenizer = tiny_tokenizer()
    args = Seq2SeqFineTuningConfig(str(tmp_path), **QUIET, per_device_eval_batch_size=size, max_decode_length=4)
    keywords = {"eval_dataset": tiny_pairs(8), "processing_class": tokenizer}
    loss = Seq2SeqFineTuningTrainer(model, args=args, **keywords).evaluate()["eval_loss"]
    with torch.no_grad():
        expected = model(**DataCollatorForSeq2Seq(tokenizer, model)(tiny_pairs(8))).loss.item()
    assert loss == pytest.approx(expected, rel=1e-5)


def test_the_loss_over_rows_is_exactly_that_of_trainer(tmp_path):
    rows = tiny_classifier_rows(7)
    fields = QUIET | {"per_device_eval_batch_size": 2}
    model = tiny_classifier(initializer_range=0.5)
    expected = Trainer(model, TrainingArguments(str(tmp_path), **fields), pad, eval_dataset=rows).evaluate()
    args = DistillationConfig(str(tmp_path), **fields)
    trainer = DistillationTrainer(model, tiny_classifier(1), args, pad, rows, rows, objectives=[HardLabels()])
    assert trainer.evaluate()["eval_loss"] == expected["eval_loss"]


@pytest.mark.parametrize("size", [1, 2])
def test_rows_of_a_classifier_without_a_label_do_not_count(tmp_path, size):
    rows = tiny_classifier_rows(6)
    for row in rows[2:5]:
        row["labels"] = -100
    model = tiny_classifier(initializer_range=0.5).eval()
    with torch.no_grad():
        expected = model(**pad(rows)).loss.item()
    assert evaluation_loss(model, rows, tmp_path, size) == pytest.approx(expected, rel=1e-5)


def evaluate_here(run):
    """Evaluates as one of several processes."""
    rows = masked_lm_rows(8)
    args = BaseConfig(run["output_dir"], **QUIET, per_device_eval_batch_size=2, ddp_backend="gloo")
    metrics = BaseTrainer(tiny_masked_lm(initializer_range=0.5), args, pad, rows, rows).evaluate()
    Path(run["output_dir"], f"metrics_{args.process_index}.json").write_text(json.dumps(metrics), "utf-8")


@pytest.mark.slow
def test_the_loss_is_a_mean_over_the_labels_of_all_processes(tmp_path):
    result = launch(evaluate_here, [{"output_dir": str(tmp_path)}], processes=2)
    assert result.returncode == 0, result.stderr[-3000:]
    expected = mean_over_labels(tiny_masked_lm(initializer_range=0.5), masked_lm_rows(8))
    for process in range(2):
        metrics = json.loads((tmp_path / f"metrics_{process}.json").read_text("utf-8"))
        assert metrics["eval_loss"] == pytest.approx(expected, rel=1e-5)
