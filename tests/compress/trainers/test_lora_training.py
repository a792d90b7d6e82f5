"""Training with adapters: what is saved is an ordinary model, and a run resumes and finds its best one exactly."""

import logging

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from hf_mwp.commands.building import build_solver
from hf_mwp.compress.models.lora import ADAPTERS, add_lora, merged_weights
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_rows, tiny_solver


@pytest.fixture
def trainer_of(processor, fine_tuning_trainer):
    def make(rank=2, seed=0, **fields):
        solver = tiny_solver(processor, dropout=0.1, seed=seed)
        if rank:
            add_lora(solver, rank, dropout=0.1, tokens=processor.number_token_ids)
        return fine_tuning_trainer(solver, **({"max_steps": 4, "learning_rate": 3e-2, "warmup_steps": 0} | fields))

    return make


def assert_equal(weights, expected):
    assert weights.keys() == expected.keys()
    for name, value in weights.items():
        assert torch.equal(value, expected[name]), name


def test_a_resumed_run_is_the_same(trainer_of, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    uninterrupted = trainer_of(save_strategy="steps", save_steps=2)
    before = {name: value.detach().clone() for name, value in uninterrupted.model.named_parameters()}
    uninterrupted.train()
    for name, value in uninterrupted.model.named_parameters():
        assert torch.equal(value, before[name]) != value.requires_grad, name
    uninterrupted.save_model()
    expected = merged_weights(uninterrupted.model)
    checkpoint = str(tmp_path / "run" / "checkpoint-2")
    # The base of the adapters comes with the checkpoint, too: this model has other weights.
    resumed = trainer_of(seed=3, folder="resumed")
    with caplog.at_level("WARNING"):
        resumed.train(resume_from_checkpoint=checkpoint)
    assert "missing keys" not in caplog.text
    assert "unexpected keys" not in caplog.text
    assert_equal(merged_weights(resumed.model), expected)

    assert not (tmp_path / "run" / ADAPTERS).exists()
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoint-4"):
        loaded, info = AutoModel.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"]
        assert not info["unexpected_keys"]
        assert not info["mismatched_keys"]
        assert_equal(loaded.state_dict(), expected)
    for rank in (None, 3):
        with pytest.raises(UsageError, match="different adapters"):
            trainer_of(rank, folder="other").train(resume_from_checkpoint=checkpoint)


@pytest.mark.slow
def test_the_best_model_is_loaded(trainer_of, tmp_path):
    fields = {"eval_strategy": "steps", "save_strategy": "steps", "eval_steps": 1, "save_steps": 1, "max_steps": 2}
    # The first step is the best.
    fields |= {"load_best_model_at_end": True, "metric_for_best_model": "loss", "greater_is_better": True}
    trainer = trainer_of(**fields)
    trainer.train()
    best = trainer.state.best_model_checkpoint
    assert best == str(tmp_path / "run" / "checkpoint-1")
    assert_equal(load_file(f"{best}/model.safetensors"), merged_weights(trainer.model))


def test_split_weights_get_no_adapters(trainer_of, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.trainers.base_trainer.shards_weights", lambda args: True)
    with pytest.raises(ValueError, match="LoRA.*FSDP.*DDP"):
        trainer_of().train()


def test_options_of_a_solver_reach_its_adapters(solver_folder):
    solver, processor = build_solver(tiny_rows(), solver=str(solver_folder), lora_rank=3, lora_targets=["key"])
    for name, parameter in solver.named_parameters():
        if ".lora_A." in name:
            assert ".key." in name
            assert parameter.shape[0] == 3
    rows = solver.get_input_embeddings().trained_tokens.rows
    assert len(rows) == len(processor.number_token_ids)
    assert rows.requires_grad


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lora_rank": 0}, "`lora_rank`.* 0"),
        ({"lora_alpha": 4}, "`lora_alpha`.*`lora_rank`"),
        ({"lora_rank": 1, "lora_dropout": 1.0}, r"`lora_dropout`.* 1\.0"),
        ({"lora_rank": 1, "lora_alpha": 0}, "`lora_alpha`.* 0"),
    ],
)
def test_impossible_adapters_are_named(solver_folder, fields, message):
    with pytest.raises(ValueError, match=message):
        build_solver(tiny_rows(), solver=str(solver_folder), **fields)
