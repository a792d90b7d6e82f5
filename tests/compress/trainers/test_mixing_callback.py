import copy

import pytest
import torch
from safetensors.torch import load_file

from hf_mwp.compress.distillation import mix_parameters
from hf_mwp.compress.pruning import HeadPruningCallback
from hf_mwp.compress.trainers import ParameterMixingCallback
from tests.compress.trainers.distilling import copy_of, same_weights, unchanged
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_masked_lm, tiny_solver


@pytest.fixture
def mixing_trainer(solver_trainer, processor):
    """Makes a trainer of a solver, which mixes the initial weights into the trained ones."""

    def make(pretrained_weight=0.2, **fields):
        student = tiny_solver(processor)
        callback = ParameterMixingCallback(copy.deepcopy(student), pretrained_weight)
        return solver_trainer(student, keywords={"callbacks": [callback]}, **fields)

    return make


def mixed(pretrained, weights, pretrained_weight=0.2):
    return {name: torch.lerp(value, pretrained[name], pretrained_weight) for name, value in weights.items()}


def test_weights_are_mixed_once_at_the_end(mixing_trainer, tmp_path):
    trainer = mixing_trainer(save_strategy="epoch")
    before = copy_of(trainer.model)
    trainer.train()
    # The checkpoint of the last step holds the weights as trained.
    trained = load_file(tmp_path / "checkpoint-3" / "model.safetensors")
    assert unchanged(trainer.model, mixed(before, trained))
    trainer.save_model()
    assert unchanged(trainer.model, load_file(tmp_path / "model.safetensors"))


@pytest.mark.slow
def test_resuming_does_not_mix_twice(mixing_trainer, tmp_path):
    fields = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    uninterrupted = mixing_trainer(**fields)
    uninterrupted.train()
    for checkpoint in ("checkpoint-2", "checkpoint-4"):
        resumed = mixing_trainer(**fields)
        resumed.train(resume_from_checkpoint=str(tmp_path / checkpoint))
        assert same_weights(resumed.model, uninterrupted.model), checkpoint


@pytest.mark.slow
def test_the_best_checkpoint_is_mixed(mixing_trainer):
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    trainer = mixing_trainer(0.5, num_train_epochs=2, **fields)
    before = copy_of(trainer.model)
    trainer.train()
    best = load_file(f"{trainer.state.best_model_checkpoint}/model.safetensors")
    assert unchanged(trainer.model, mixed(before, best, 0.5))


def test_a_pooler_that_a_folder_does_not_have_is_not_mixed(model_trainer, tmp_path):
    student = tiny_classifier()
    masked_lm = tiny_masked_lm(seed=1)
    masked_lm.save_pretrained(tmp_path / "pretrained")
    callback = ParameterMixingCallback(str(tmp_path / "pretrained"), pretrained_weight=1.0)
    pooler = copy_of(student.bert.pooler)
    trainer = model_trainer(student, keywords={"callbacks": [callback]}, max_steps=1, learning_rate=0.0)
    trainer.train()
    assert same_weights(student.bert.encoder, masked_lm.bert.encoder)
    assert unchanged(student.bert.pooler, pooler)


def test_projections_of_a_trainer_are_not_mixed(model_trainer):
    before = tiny_classifier()
    trainer = model_trainer(keywords={"callbacks": [ParameterMixingCallback(before)]}, max_steps=1)
    assert len(trainer.projections)
    trainer.train()
    assert same_weights(trainer.model, mix_parameters(before, trainer.model, pretrained_weight=0.0))


def test_models_that_do_not_fit_are_named_before_training(solver_trainer, processor):
    callback = ParameterMixingCallback(tiny_solver(processor, layers=3))
    trainer = solver_trainer(keywords={"callbacks": [callback]})
    with pytest.raises(ValueError, match="encoder.layer.2.*pretrained"):
        trainer.train()
    assert trainer.state.global_step == 0
    with pytest.raises(ValueError, match="`pretrained_weight`"):
        ParameterMixingCallback(tiny_solver(processor), pretrained_weight=-1)


def test_split_weights_are_not_mixed(mixing_trainer, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.trainers.mixing_callback.shards_weights", lambda args: True)
    with pytest.raises(ValueError, match="FSDP.*DDP"):
        mixing_trainer().train()


@pytest.mark.parametrize("order", slow_after(1, ["pruning last", "pruning first", "pruning added"]))
def test_heads_cannot_be_cut_before_the_weights_are_mixed(order, solver_trainer, processor):
    student = tiny_solver(processor)
    mixing = ParameterMixingCallback(copy.deepcopy(student))
    pruning = HeadPruningCallback(num_pruning_steps=2, mode="slice")
    callbacks = {"pruning last": [mixing, pruning], "pruning first": [pruning, mixing], "pruning added": [mixing]}
    trainer = solver_trainer(student, keywords={"callbacks": callbacks[order]})
    if order == "pruning added":
        trainer.add_callback(pruning)
    with pytest.raises(ValueError, match=r'`HeadPruningCallback\(mode="slice"\)`.*`mode="mask"`'):
        trainer.train()
    assert trainer.state.global_step == 0


def test_a_pickle_is_refused(processor, tmp_path):
    encoder = tiny_solver(processor).encoder
    encoder.config.save_pretrained(tmp_path)
    torch.save(encoder.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match="model.safetensors"):
        ParameterMixingCallback(str(tmp_path))
