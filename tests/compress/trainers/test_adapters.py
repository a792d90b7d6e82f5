"""Adapters of trainers: what differs between kinds of models."""

import pytest
import torch

from hf_mwp.compress.models.model_kind import ModelKind, kind_of
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.model_adapter import ModelAdapter
from hf_mwp.compress.trainers.seq2seq_adapter import Seq2SeqAdapter
from hf_mwp.solver.training.solver_adapter import SolverAdapter
from tests.compress.trainers.distilling import QUIET, pad
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver
from tests.tiny_seq2seq import tiny_seq2seq


@pytest.mark.parametrize(
    ("make_model", "adapter_class"),
    [
        (lambda: tiny_solver(tiny_processor()), SolverAdapter),
        (tiny_seq2seq, Seq2SeqAdapter),
        (tiny_classifier, ModelAdapter),
    ],
)
def test_each_kind_of_model_has_its_adapter(make_model, adapter_class):
    assert kind_of(make_model()).adapter_class() is adapter_class


class LongRows(ModelAdapter):
    """Evaluates only rows of more than four tokens, and reports how many of them have a first logit above 0."""

    needs_predictions = True

    def evaluation_rows(self, rows):
        return [row for row in rows if len(row["input_ids"]) > 4]

    def own_rates(self):
        return [(self.model.classifier, 0.5, 0.0)]

    def metric_names(self, rows):
        return {"loss", "positive"}

    def predict(self, trainer, model, inputs):
        logits = model(**trainer._prepare_inputs(inputs)).logits
        return torch.zeros(()), logits[:, 0].detach() > 0, inputs["labels"]

    def add_metrics(self, output, rows, prefix):
        output.metrics.update({f"{prefix}_positive": int(output.predictions.sum()), f"{prefix}_rows": len(rows)})
        return output


class LongRowsKind(ModelKind):
    def adapter_class(self):
        return LongRows


def test_a_trainer_follows_the_adapter_of_its_model(monkeypatch, tmp_path):
    model = tiny_classifier(seed=1)
    monkeypatch.setattr(type(model), "kind", LongRowsKind("long rows"), raising=False)
    rows = []
    for length in (3, 5, 5):
        rows.append({"input_ids": [2] + [5] * (length - 2) + [3], "attention_mask": [1] * length, "labels": 0})
    fields = QUIET | {"eval_strategy": "epoch", "metric_for_best_model": "positive"}
    trainer = BaseTrainer(model, BaseConfig(str(tmp_path), **fields), pad, rows[1:], rows)
    metrics = trainer.evaluate()
    with torch.no_grad():
        logits = model.eval()(**pad(rows[1:])).logits
    assert (logits[:, 0] > 0).all()
    assert metrics["eval_rows"] == metrics["eval_positive"] == 2
    fast_parameters = set()
    for group in trainer.create_optimizer().param_groups:
        if group["lr"] == 0.5:
            fast_parameters |= set(group["params"])
    assert fast_parameters == set(model.classifier.parameters())
