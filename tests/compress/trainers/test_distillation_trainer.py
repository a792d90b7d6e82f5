"""Distillation of solvers: training, checkpoints, the loss."""

import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, TrainerCallback

from hf_mwp.solver.models.cut_student import cut_student
from tests.compress.trainers.distilling import copy_of, encoded_batch, training_logs, unchanged
from tests.tiny import tiny_solver


PROJECTIONS = "distillation_projections"


def test_student_and_projections_change_and_the_teacher_does_not(solver_trainer, tmp_path):
    trainer = solver_trainer(warmup_steps=0)
    teacher = copy_of(trainer.teacher_model)
    student = copy_of(trainer.model)
    projections = copy_of(trainer.projections.module)
    trainer.train()
    assert trainer.model.state_dict().keys() == student.keys()
    for name, value in trainer.model.state_dict().items():
        assert not torch.equal(value, student[name]), name
    assert projections.keys() == {"hidden_1.weight", "hidden_2.weight", "embedding.weight"}
    for name, value in trainer.projections.module.state_dict().items():
        assert not torch.equal(value, projections[name]), name
    assert unchanged(trainer.teacher_model, teacher)
    assert not trainer.teacher_model.training
    assert not any(parameter.requires_grad for parameter in trainer.teacher_model.parameters())
    # The projections leave the student.
    assert not trainer.model._forward_hooks
    assert not hasattr(trainer.model, PROJECTIONS)
    assert not any(PROJECTIONS in key for key in trainer.model._keys_to_ignore_on_save)
    trainer.save_model()
    assert load_file(tmp_path / "model.safetensors").keys() <= student.keys()
    assert not list(tmp_path.glob(f"{PROJECTIONS}*"))


def test_projections_learn_at_their_own_rate_in_each_training(solver_trainer):
    trainer = solver_trainer(max_steps=1, warmup_steps=0, projection_learning_rate=1e-2, weight_decay=0.0)
    initial = copy_of(trainer.projections.module)
    trainer.train()
    first = copy_of(trainer.projections.module)
    for name, value in first.items():
        # The first step of Adam is as large as the rate.
        assert (value - initial[name]).abs().max().item() == pytest.approx(1e-2, rel=1e-3), name
    trainer.train()
    for name, value in trainer.projections.module.state_dict().items():
        assert not torch.equal(value, first[name]), name


def test_projections_leave_the_student_after_an_error(solver_trainer):
    class Fails(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            raise RuntimeError("out of coffee")

    trainer = solver_trainer(keywords={"callbacks": [Fails()]})
    with pytest.raises(RuntimeError, match="coffee"):
        trainer.train()
    assert not hasattr(trainer.model, PROJECTIONS)
    assert not trainer.model._forward_hooks


def test_an_optimizer_without_the_projections_is_refused(solver_trainer, processor):
    student = tiny_solver(processor)
    optimizer = torch.optim.SGD(student.parameters(), lr=1e-3)
    trainer = solver_trainer(student, keywords={"optimizers": (optimizer, None)}, max_steps=2)
    with pytest.raises(ValueError, match="projections.*`optimizer_cls_and_kwargs`"):
        trainer.train()


def test_logs_of_a_second_training_begin_anew(model_trainer):
    rates = {"learning_rate": 0.0, "projection_learning_rate": 0.0, "train_sampling_strategy": "sequential"}
    trainer = model_trainer(logging_steps=3, max_steps=4, **rates)
    trainer.train()
    first_logs = training_logs(trainer)
    trainer.train()
    assert training_logs(trainer) == first_logs


def test_checkpoints_load_as_plain_models_and_the_best_one_is_loaded(solver_trainer, caplog, monkeypatch):
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    trainer = solver_trainer(num_train_epochs=2, **fields)
    assert trainer.args.metric_for_best_model == "answer_accuracy"
    assert trainer.args.greater_is_better
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with caplog.at_level("WARNING"):
        trainer.train()
    assert "missing keys" not in caplog.text
    assert "unexpected keys" not in caplog.text
    checkpoint = Path(trainer.state.best_model_checkpoint)
    model, info = AutoModel.from_pretrained(checkpoint, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert unchanged(model, trainer.model.state_dict())
    assert unchanged(trainer.projections.module, load_file(checkpoint / f"{PROJECTIONS}.safetensors"))


@pytest.mark.slow
def test_resuming_needs_the_projections(solver_trainer, tmp_path):
    solver_trainer(save_strategy="steps", save_steps=2, max_steps=2).train()
    checkpoint = tmp_path / "checkpoint-2"
    with pytest.raises(RuntimeError, match="hidden_1.weight"):
        solver_trainer(layer_mapping="2:4").train(resume_from_checkpoint=str(checkpoint))
    (checkpoint / f"{PROJECTIONS}.safetensors").unlink()
    with pytest.raises(ValueError, match="distillation_projections.safetensors"):
        solver_trainer().train(resume_from_checkpoint=str(checkpoint))


@pytest.mark.slow
def test_equal_widths_need_no_projections(solver_trainer, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, seed=1)
    trainer = solver_trainer(cut_student(teacher, 2), teacher, save_strategy="steps", save_steps=1, max_steps=1)
    trainer.train()
    assert len(trainer.projections) == 0
    assert not (tmp_path / "checkpoint-1" / f"{PROJECTIONS}.safetensors").exists()


def test_the_loss_is_that_of_the_formula(solver_trainer, processor):
    fields = {"temperature": 3.0, "soft_label_weight": 0.3, "hidden_weights": [2.0, 0.5], "embedding_weight": 0.7}
    fields |= {"per_device_train_batch_size": 24, "prediction_weight": 0.9, "learning_rate": 0.0, "max_steps": 1}
    trainer = solver_trainer(**fields)
    trainer.train()
    (entry,) = training_logs(trainer)

    batch = encoded_batch(processor)
    with torch.no_grad():
        student_output = tiny_solver(processor)(**batch)
        teacher_output = trainer.teacher_model(**batch)
    soft = 0.0
    for row, node in (batch["labels"] != -100).nonzero().tolist():
        student_probabilities = (student_output.logits[row, node] / 3.0).softmax(-1)
        teacher_probabilities = (teacher_output.logits[row, node] / 3.0).softmax(-1)
        for p, q in zip(teacher_probabilities, student_probabilities, strict=True):
            if p > 0:
                soft += 9 * (p * (p / q).log()).item() / 24
    assert entry["loss_soft"] == pytest.approx(soft, rel=1e-4)
    assert entry["loss_hard"] == pytest.approx(student_output.loss.item(), rel=1e-5)
    total = 0.9 * (0.3 * entry["loss_soft"] + 0.7 * entry["loss_hard"]) + 0.7 * entry["loss_embedding"]
    total += 2.0 * entry["loss_hidden_1"] + 0.5 * entry["loss_hidden_2"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)


@pytest.mark.slow
def test_logged_parts_are_means_over_steps_and_accumulated_batches(solver_trainer):
    fields = {"learning_rate": 0.0, "decoder_learning_rate": 0.0, "projection_learning_rate": 0.0}
    each_step = solver_trainer(per_device_train_batch_size=4, **fields)
    each_step.train()
    at_the_end = solver_trainer(
        per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=3, **fields
    )
    at_the_end.train()
    (summary,) = training_logs(at_the_end)
    steps = training_logs(each_step)
    assert len(steps) == 6
    assert summary["loss_hard"] == pytest.approx(sum(entry["loss_hard"] for entry in steps) / 6, rel=1e-5)
    assert summary["loss"] == pytest.approx(sum(entry["loss"] for entry in steps) / 6, rel=1e-2)


@pytest.mark.slow
def test_evaluations_within_and_after_a_training_are_equal(solver_trainer):
    trainer = solver_trainer(eval_strategy="epoch", cache_teacher_outputs=True)
    collator = trainer.data_collator
    trainer.train()
    assert trainer.data_collator is collator
    (within,) = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    after = trainer.evaluate()
    assert within["eval_loss"] == after["eval_loss"]
    assert after["eval_num_problems"] == 12
    assert {"eval_answer_accuracy", "eval_answer_accuracy_low"} <= after.keys()
