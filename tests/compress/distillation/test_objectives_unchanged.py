"""One training step of each setting of `DistillationConfig`: losses and gradients, recorded before objectives were."""

import json
from pathlib import Path

import pytest
import torch
from transformers import TrainerCallback

from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from tests.compress.trainers.distilling import (
    ONE_STEP,
    distinct_rows,
    eager,
    first_losses,
    masked_lm_rows,
    pad,
    solver_with_bottlenecks,
)
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_masked_lm, tiny_processor, tiny_solver


def solvers():
    processor = tiny_processor()
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    keywords = {"processing_class": processor, "train_dataset": distinct_rows(8)}
    return {"model": tiny_solver(processor), "teacher_model": teacher, **keywords}


def bottlenecks():
    keywords = solvers()
    return keywords | {"teacher_model": solver_with_bottlenecks(keywords["processing_class"])}


def classifiers():
    teacher = tiny_classifier(1, hidden_size=24, num_hidden_layers=4)
    rows = tiny_classifier_rows(8)
    return {"model": tiny_classifier(), "teacher_model": teacher, "train_dataset": rows, "data_collator": pad}


def masked_lms():
    teacher = tiny_masked_lm(1, hidden_size=24, num_hidden_layers=4)
    rows = masked_lm_rows(8)
    return {"model": tiny_masked_lm(), "teacher_model": teacher, "train_dataset": rows, "data_collator": pad}


SETTINGS = {
    "default": (solvers, {}),
    "paper's formula": (solvers, {"temperature": 2.0, "scale_by_square": False, "soft_label_weight": 0.3}),
    "soft": (solvers, {"soft_label_weight": 1.0, "embedding_weight": 0.0}),
    "hard": (solvers, {"soft_label_weight": 0.0, "hidden_loss": "none"}),
    "features alone": (solvers, {"prediction_weight": 0.0, "embedding_weight": 0.5}),
    "weighted pairs": (solvers, {"layer_mapping": "1:3,2:4", "hidden_weights": [2.0, 0.5], "prediction_weight": 0.9}),
    "first": (solvers, {"layer_mapping": "first"}),
    "embedding output": (solvers, {"layer_mapping": [[0, 1], [2, 4]]}),
    "attention": (solvers, {"hidden_loss": "attention"}),
    "attention_mean": (solvers, {"hidden_loss": "attention_mean", "layer_mapping": "last"}),
    "fsp": (solvers, {"hidden_loss": "fsp"}),
    "fsp of pairs": (solvers, {"hidden_loss": "fsp", "layer_mapping": "2:3,0:1"}),
    "nst": (solvers, {"hidden_loss": "nst"}),
    "none": (solvers, {"hidden_loss": None, "embedding_weight": 0.0}),
    "bottlenecks": (bottlenecks, {}),
    "bottlenecks ignored": (bottlenecks, {"use_bottlenecks": False}),
    "bottlenecks, fsp": (bottlenecks, {"hidden_loss": "fsp"}),
    "classifiers": (classifiers, {}),
    "classifiers, attention": (classifiers, {"hidden_loss": "attention"}),
    "masked language models": (masked_lms, {}),
    "masked language models, fsp": (masked_lms, {"hidden_loss": "fsp"}),
    "masked language models, nst": (masked_lms, {"hidden_loss": "nst"}),
}

RECORDED = json.loads(Path(__file__).with_name("objectives_unchanged.json").read_text("utf-8"))

# `test_objectives.py` has each objective in several batches and with a cache; here is what differs between models.
ACCUMULATED = ["default", "attention", "fsp", "bottlenecks, fsp", "masked language models"]
CACHED = ["default", "fsp of pairs", "bottlenecks", "bottlenecks ignored", "classifiers", "masked language models"]


class GradientSums(TrainerCallback):
    """Sums of the gradients, of the student's and of the projections', each number times one of its own."""

    def __init__(self):
        self.sums = {"student": 0.0, "projections": 0.0}

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                continue
            pattern = torch.arange(parameter.numel(), dtype=torch.float32).cos().view_as(parameter)
            key = "projections" if "distillation_projections" in name else "student"
            self.sums[key] += (parameter.grad * pattern).sum().item()


def one_step(name, folder, batch_size=8, **changes):
    make_models, fields = SETTINGS[name]
    keywords = make_models()
    eager(keywords["model"])
    eager(keywords["teacher_model"])
    steps = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": 8 // batch_size}
    args = DistillationConfig(str(folder), max_grad_norm=0.0, **(ONE_STEP | steps | fields | changes))
    gradients = GradientSums()
    losses = first_losses(DistillationTrainer(args=args, callbacks=[gradients], **keywords))
    return losses | gradients.sums


@pytest.mark.parametrize("name", slow_after(2, SETTINGS))
def test_a_step_has_the_recorded_losses_and_gradients(name, tmp_path):
    assert one_step(name, tmp_path) == pytest.approx(RECORDED[name], rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, ACCUMULATED))
def test_a_step_of_four_batches_has_the_recorded_losses_and_gradients(name, tmp_path):
    assert one_step(name, tmp_path, batch_size=2) == pytest.approx(RECORDED[name], rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, CACHED))
def test_a_step_with_a_cached_teacher_has_the_recorded_losses_and_gradients(name, tmp_path):
    losses = one_step(name, tmp_path, cache_teacher_outputs=True)
    assert losses == pytest.approx(RECORDED[name], rel=5e-3, abs=1e-3)
