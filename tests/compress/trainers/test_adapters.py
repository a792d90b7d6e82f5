"""Adapters of trainers: what differs between kinds of models."""

import torch
from transformers import default_data_collator

from hf_mwp.compress.models.model_kind import ModelKind, kind_of
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.model_adapter import ModelAdapter
from hf_mwp.compress.trainers.seq2seq_adapter import Seq2SeqAdapter
from hf_mwp.solver.training.solver_adapter import SolverAdapter
from tests.tiny import tiny_classifier, tiny_solver
from tests.tiny_seq2seq import tiny_seq2seq


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


def test_each_kind_of_model_has_its_adapter(processor):
    assert kind_of(tiny_solver(processor)).adapter_class() is SolverAdapter
    assert kind_of(tiny_seq2seq("bart")).adapter_class() is Seq2SeqAdapter
    assert kind_of(tiny_classifier()).adapter_class() is ModelAdapter


class LongRowsKind(ModelKind):
    def adapter_class(self):
        return LongRows


def test_a_trainer_follows_the_adapter_of_its_model(monkeypatch, tmp_path):
    monkeypatch.setattr(type(tiny_classifier()), "kind", LongRowsKind("long rows"), raising=False)
    rows = [{"input_ids": [2, *[5] * size, 3], "attention_mask": [1] * (size + 2), "labels": 0} for size in (1, 3, 3)]
    model = tiny_classifier(seed=1).eval()
    args = BaseConfig(
        str(tmp_path), use_cpu=True, report_to="none", eval_strategy="epoch", metric_for_best_model="positive"
    )
    trainer = BaseTrainer(model, args, default_data_collator, rows[1:], rows)
    with torch.no_grad():
        first = model(torch.tensor([rows[1]["input_ids"]]), torch.ones(1, 5)).logits[0, 0]
    metrics = trainer.evaluate()
    assert first > 0 and metrics["eval_rows"] == metrics["eval_positive"] == 2
    groups = trainer.create_optimizer().param_groups
    own = {id(parameter) for parameter in model.classifier.parameters()}
    assert {id(p) for group in groups if group["lr"] == 0.5 for p in group["params"]} == own
