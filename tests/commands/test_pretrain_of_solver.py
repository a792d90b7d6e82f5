"""Pretraining that starts from a solver's encoder, and probes of it."""

import pytest
import torch
from transformers import AutoModelForPreTraining

from hf_mwp.commands.main import main
from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import read_json
from tests.tiny import tiny_problems


def pretrain(solver_folder, folder, *options):
    """Pretrain a solver's encoder, and return the model and the names of the encoder's weights that changed."""
    texts = folder / "texts.txt"
    texts.write_text("".join(f"{problem.text}\n" for problem in tiny_problems(40)), encoding="utf-8")
    argv = ["pretrain", "--corpus", str(texts), "--encoder", str(solver_folder), "--output_dir", str(folder / "out")]
    argv += ["--mlm_loss_weight=0", "--validation_fraction=0.2", "--max_steps=3", "--use_cpu", "--max_length=64"]
    assert main([*argv, "--eval_strategy=no", "--save_strategy=no", *options]) == 0
    model = AutoModelForPreTraining.from_pretrained(folder / "out")
    before = MwpSolver.from_pretrained(solver_folder).encoder.state_dict()
    changed = set()
    for name, value in model.base_model.state_dict().items():
        if "pooler" not in name and not torch.equal(value, before[name]):
            changed.add(name)
    return model, changed


@pytest.mark.slow
def test_only_the_head_on_a_frozen_encoder_is_trained(solver_folder, tmp_path):
    model, changed = pretrain(solver_folder, tmp_path, "--freeze_encoder", "--learning_rate", "0.05")
    assert not changed
    assert model.cls.pos_tagger.bias.abs().sum() > 0
    validation = read_json(tmp_path / "out" / "metrics.json")["validation"]
    assert 0 <= validation["pos_f1"] <= 1
    assert "mlm_loss" not in validation


@pytest.mark.slow
def test_encoder_of_a_solver_is_trained(solver_folder, tmp_path):
    model, changed = pretrain(solver_folder, tmp_path, "--dropout", "0.1", "--attn_implementation", "eager")
    assert "encoder.layer.0.output.dense.weight" in changed
    assert model.config.hidden_dropout_prob == 0.1
