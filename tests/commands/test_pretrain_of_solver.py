"""Pretraining that starts from a solver's encoder, and probes of it."""

import json

import torch
from transformers import AutoModelForPreTraining

from hf_mwp.commands.main import main
from hf_mwp.solver.models import MwpSolver
from tests.tiny import tiny_problems


def pretrain(folder, tmp_path, *options):
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{problem.text}\n" for problem in tiny_problems(40)), encoding="utf-8")
    argv = ["pretrain", "--corpus", str(texts), "--encoder", str(folder), "--output_dir", str(tmp_path / "out")]
    argv += ["--mlm_loss_weight", "0", "--validation_fraction", "0.2", "--max_steps", "3", "--use_cpu", "--max_length"]
    assert main([*argv, "64", "--eval_strategy", "no", "--save_strategy", "no", *options]) == 0
    return AutoModelForPreTraining.from_pretrained(tmp_path / "out")


def encoder_weights(model):
    weights = model.base_model.state_dict()
    return {name: value for name, value in weights.items() if "pooler" not in name}


def test_a_frozen_encoder_of_a_solver_stays_and_the_head_learns(solver_folder, tmp_path):
    solver = MwpSolver.from_pretrained(solver_folder)
    model = pretrain(solver_folder, tmp_path, "--freeze_encoder", "--learning_rate", "0.05")
    before = solver.encoder.state_dict()
    for name, value in encoder_weights(model).items():
        assert torch.equal(value, before[name]), name
    assert model.cls.pos_tagger.bias.abs().sum() > 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert 0 <= metrics["validation"]["pos_f1"] <= 1 and "mlm_loss" not in metrics["validation"]


def test_without_freezing_the_encoder_of_a_solver_learns(solver_folder, tmp_path):
    solver = MwpSolver.from_pretrained(solver_folder)
    model = pretrain(solver_folder, tmp_path, "--dropout", "0.1", "--attn_implementation", "eager")
    before = solver.encoder.state_dict()
    layers = [name for name in encoder_weights(model) if "layer.0" in name and name.endswith("dense.weight")]
    assert layers and all(not torch.equal(model.base_model.state_dict()[name], before[name]) for name in layers)
    assert model.config.hidden_dropout_prob == 0.1
