import copy

import pytest
import torch
from safetensors.torch import load_file

from hf_mwp.compress.distillation import mix_parameters
from hf_mwp.compress.models import MwpStudentForPreTraining
from hf_mwp.compress.pruning import HeadPruningCallback
from hf_mwp.compress.trainers import ParameterMixingCallback
from tests.compress.trainers.distilling import copy_of
from tests.tiny import tiny_classifier, tiny_masked_lm, tiny_solver


def same(model, weights):
    return all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def mixed_with(before, weights, pretrained_weight=0.2):
    return {name: torch.lerp(value, before[name], pretrained_weight) for name, value in weights.items()}


def test_it_mixes_once_at_the_end(solvers, processor, tmp_path):
    student = tiny_solver(processor)
    before = copy.deepcopy(student)
    fields = {"num_train_epochs": 2, "save_strategy": "epoch"}
    trainer = solvers(student, keywords={"callbacks": [ParameterMixingCallback(before)]}, **fields)
    trainer.train()
    # The checkpoint of the last step holds the weights as trained.
    trained = load_file(tmp_path / "checkpoint-6" / "model.safetensors")
    assert same(trainer.model, mixed_with(before.state_dict(), trained))
    trainer.save_model()
    assert same(trainer.model, load_file(tmp_path / "model.safetensors"))


def test_resuming_does_not_mix_twice(solvers, processor, tmp_path):
    def train(resume=None):
        student = tiny_solver(processor)
        callback = ParameterMixingCallback(copy.deepcopy(student))
        trainer = solvers(
            student, keywords={"callbacks": [callback]}, num_train_epochs=2, save_strategy="steps", save_steps=3
        )
        trainer.train(resume_from_checkpoint=resume)
        return copy_of(trainer.model)

    at_once = train()
    for checkpoint in ("checkpoint-3", "checkpoint-6"):
        again = train(str(tmp_path / checkpoint))
        assert all(torch.equal(again[name], value) for name, value in at_once.items()), checkpoint


def test_the_best_checkpoint_is_what_is_mixed(solvers, processor, tmp_path):
    student = tiny_solver(processor)
    before = copy_of(student)
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    callback = ParameterMixingCallback(copy.deepcopy(student), pretrained_weight=0.5)
    trainer = solvers(student, keywords={"callbacks": [callback]}, num_train_epochs=2, **fields)
    trainer.train()
    best = load_file(f"{trainer.state.best_model_checkpoint}/model.safetensors")
    assert same(trainer.model, mixed_with(before, best, 0.5))


def test_a_folder_of_a_pretrained_student(solvers, processor, tmp_path):
    student = tiny_solver(processor)
    config = copy.deepcopy(student.encoder.config)
    config.num_pos_tags = 4
    MwpStudentForPreTraining(config).save_pretrained(tmp_path / "pretrained")
    callback = ParameterMixingCallback(str(tmp_path / "pretrained"), pretrained_weight=1.0)
    trainer = solvers(student, keywords={"callbacks": [callback]}, max_steps=1, warmup_steps=0)
    decoder = copy_of(student.decoder)
    trainer.train()
    pretrained = MwpStudentForPreTraining.from_pretrained(tmp_path / "pretrained").base_model.state_dict()
    assert same(trainer.model.encoder, pretrained)
    assert not same(trainer.model.decoder, decoder)


def test_a_pooler_that_a_folder_does_not_have_is_not_mixed(others, tmp_path):
    student = tiny_classifier()
    masked = tiny_masked_lm(seed=1)
    masked.save_pretrained(tmp_path / "pretrained")
    callback = ParameterMixingCallback(str(tmp_path / "pretrained"), pretrained_weight=1.0)
    before = copy_of(student.bert.pooler)
    trainer = others(student, keywords={"callbacks": [callback]}, max_steps=1, learning_rate=0.0)
    trainer.train()
    assert same(student.bert.encoder, masked.bert.encoder.state_dict()) and same(student.bert.pooler, before)


def test_a_trainers_projections_are_no_part_of_the_model(others):
    before = tiny_classifier()
    trainer = others(keywords={"callbacks": [ParameterMixingCallback(before)]}, max_steps=1)
    assert len(trainer.projections)
    trainer.train()
    assert same(trainer.model, mix_parameters(before, trainer.model, pretrained_weight=0.0).state_dict())


def test_what_does_not_fit_is_named_before_training(solvers, processor):
    callback = ParameterMixingCallback(tiny_solver(processor, layers=3))
    trainer = solvers(keywords={"callbacks": [callback]})
    with pytest.raises(ValueError, match="encoder.layer.2.*pretrained"):
        trainer.train()
    assert trainer.state.global_step == 0
    with pytest.raises(ValueError, match="`pretrained_weight`"):
        ParameterMixingCallback(tiny_solver(processor), pretrained_weight=-1)


def test_split_weights_are_not_mixed(solvers, processor, monkeypatch):
    monkeypatch.setattr("hf_mwp.compress.trainers.mixing_callback.shards_weights", lambda args: True)
    trainer = solvers(keywords={"callbacks": [ParameterMixingCallback(tiny_solver(processor))]})
    with pytest.raises(ValueError, match="FSDP.*DDP"):
        trainer.train()


@pytest.mark.parametrize("order", [1, -1, 0])
def test_heads_are_not_cut_while_it_waits(order, solvers, processor):
    student = tiny_solver(processor)
    callbacks = [
        ParameterMixingCallback(copy.deepcopy(student)),
        HeadPruningCallback(num_pruning_steps=2, mode="slice"),
    ]
    trainer = solvers(student, keywords={"callbacks": callbacks[::order] if order else callbacks[:1]})
    if not order:
        trainer.add_callback(callbacks[1])
    with pytest.raises(ValueError, match=r'`HeadPruningCallback\(mode="slice"\)`.*`mode="mask"`'):
        trainer.train()
    assert trainer.state.global_step == 0


def test_a_pickle_is_refused(processor, tmp_path):
    encoder = tiny_solver(processor).encoder
    encoder.config.save_pretrained(tmp_path)
    torch.save(encoder.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match="model.safetensors"):
        ParameterMixingCallback(str(tmp_path))
