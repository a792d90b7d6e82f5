"""Distillation of solvers: training, checkpoints, the loss."""

import copy
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, TrainerCallback

from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models.cut_student import cut_student
from tests.compress.trainers.distilling import assert_same_training, copy_of, training_logs, unchanged
from tests.tiny import tiny_problems, tiny_solver


PROJECTIONS = "distillation_projections"


def test_student_and_projections_change_and_the_teacher_does_not(solvers):
    trainer = solvers(warmup_steps=0)
    teacher = copy_of(trainer.teacher_model)
    student = copy_of(trainer.model)
    projections = copy_of(trainer.projections.module)
    trainer.train()
    for name, value in trainer.model.state_dict().items():
        assert not torch.equal(value, student[name]), name
    assert set(projections) == {"hidden_1.weight", "hidden_2.weight", "embedding.weight"}
    for name, value in trainer.projections.module.state_dict().items():
        assert not torch.equal(value, projections[name]), name
    assert unchanged(trainer.teacher_model, teacher)
    assert not trainer.teacher_model.training
    assert not any(parameter.requires_grad for parameter in trainer.teacher_model.parameters())


def test_projections_change_after_one_step_at_their_own_rate(solvers):
    trainer = solvers(max_steps=1, warmup_steps=0, projection_learning_rate=1e-2, weight_decay=0.0)
    before = copy_of(trainer.projections.module)
    trainer.train()
    for name, value in trainer.projections.module.state_dict().items():
        # The first step of Adam is as large as the rate.
        assert (value - before[name]).abs().max().item() == pytest.approx(1e-2, rel=1e-3), name


def test_projections_leave_the_student(solvers, tmp_path):
    trainer = solvers()
    names = set(trainer.model.state_dict())
    trainer.train()
    assert set(trainer.model.state_dict()) == names
    assert not trainer.model._forward_hooks and not hasattr(trainer.model, PROJECTIONS)
    assert not any(PROJECTIONS in key for key in trainer.model._keys_to_ignore_on_save)
    trainer.save_model()
    assert set(load_file(tmp_path / "model.safetensors")) <= names
    assert not list(tmp_path.glob(f"{PROJECTIONS}*"))


def test_projections_leave_the_student_after_an_error(solvers):
    class Fails(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            raise RuntimeError("out of coffee")

    trainer = solvers(keywords={"callbacks": [Fails()]})
    with pytest.raises(RuntimeError, match="coffee"):
        trainer.train()
    assert not hasattr(trainer.model, PROJECTIONS) and not trainer.model._forward_hooks


def test_an_optimizer_without_the_projections_is_refused(solvers, processor):
    student = tiny_solver(processor)
    optimizer = torch.optim.SGD(student.parameters(), lr=1e-3)
    trainer = solvers(student, keywords={"optimizers": (optimizer, None)}, max_steps=2)
    with pytest.raises(ValueError, match="projections.*`optimizer_cls_and_kwargs`"):
        trainer.train()


def test_projections_learn_in_a_second_training(solvers):
    trainer = solvers(max_steps=2, warmup_steps=0)
    first = copy_of(trainer.projections.module)
    for _ in range(2):
        trainer.train()
    assert all(not torch.equal(value, first[name]) for name, value in trainer.projections.module.state_dict().items())


def test_logs_of_a_second_training_begin_anew(others):
    rates = {"learning_rate": 0.0, "projection_learning_rate": 0.0, "train_sampling_strategy": "sequential"}
    trainer = others(logging_steps=3, max_steps=4, **rates)
    logs = []
    for _ in range(2):
        trainer.train()
        logs.append(training_logs(trainer))
    assert logs[0] == logs[1]


def test_training_again_goes_on_with_the_same_projections(solvers):
    trainer = solvers(max_steps=1, warmup_steps=0)
    trainer.train()
    first = copy_of(trainer.projections.module)
    trainer.train()
    assert not unchanged(trainer.projections.module, first)


def test_checkpoints_load_as_plain_models_and_the_best_one_is_found(solvers, caplog, monkeypatch):
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    trainer = solvers(num_train_epochs=2, **fields)
    assert trainer.args.metric_for_best_model == "answer_accuracy" and trainer.args.greater_is_better
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with caplog.at_level("WARNING"):
        trainer.train()
    assert "missing keys" not in caplog.text and "unexpected keys" not in caplog.text
    checkpoint = Path(trainer.state.best_model_checkpoint)
    model, info = AutoModel.from_pretrained(checkpoint, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    assert unchanged(model, trainer.model.state_dict())
    assert unchanged(trainer.projections.module, load_file(checkpoint / f"{PROJECTIONS}.safetensors"))


def test_resuming_needs_the_projections(solvers, tmp_path):
    trainer = solvers(save_strategy="steps", save_steps=2)
    trainer.train()
    checkpoint = tmp_path / "checkpoint-2"
    with pytest.raises(RuntimeError, match="hidden_1.weight"):
        solvers(layer_mapping="2:4").train(resume_from_checkpoint=str(checkpoint))
    (checkpoint / f"{PROJECTIONS}.safetensors").unlink()
    with pytest.raises(ValueError, match="distillation_projections.safetensors"):
        solvers().train(resume_from_checkpoint=str(checkpoint))


def test_equal_widths_need_no_projections(solvers, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, seed=1)
    trainer = solvers(cut_student(teacher, 2), teacher, save_strategy="steps", save_steps=2)
    trainer.train()
    assert len(trainer.projections) == 0
    assert not (tmp_path / "checkpoint-2" / f"{PROJECTIONS}.safetensors").exists()
    assert "loss_hidden_2" in training_logs(trainer)[0]


def test_a_student_equal_to_its_teacher_has_nothing_to_learn_from_it(solvers, processor):
    teacher = tiny_solver(processor, layers=2)
    trainer = solvers(copy.deepcopy(teacher), teacher, soft_label_weight=1.0, max_steps=1)
    trainer.train()
    (entry,) = training_logs(trainer)
    assert entry["loss"] == pytest.approx(0.0, abs=1e-6) and entry["loss_hidden_1"] == 0.0


def test_parts_are_those_of_the_formula(solvers, processor):
    fields = {"temperature": 3.0, "soft_label_weight": 0.3, "hidden_weights": [2.0, 0.5], "embedding_weight": 0.7}
    trainer = solvers(learning_rate=0.0, max_steps=1, per_device_train_batch_size=24, prediction_weight=0.9, **fields)
    trainer.train()
    (entry,) = training_logs(trainer)

    columns = [processor.encode([problem], with_labels=True) for problem in tiny_problems()]
    batch = MwpCollator(processor)([{name: values[0] for name, values in each.items()} for each in columns])
    student = tiny_solver(processor)
    teacher = trainer.teacher_model
    with torch.no_grad():
        ours = student(**batch, output_hidden_states=True)
        theirs = teacher(**batch, output_hidden_states=True)
    soft = 0.0
    for row in range(24):
        for node in range(batch["labels"].shape[1]):
            if batch["labels"][row, node] != -100:
                p = (theirs.logits[row, node] / 3.0).softmax(-1)
                q = (ours.logits[row, node] / 3.0).softmax(-1)
                soft += 9 * sum(a * (a / b).log() for a, b in zip(p, q, strict=True) if a > 0).item() / 24
    assert entry["loss_soft"] == pytest.approx(soft, rel=1e-4)
    assert entry["loss_hard"] == pytest.approx(ours.loss.item(), rel=1e-5)
    valid = batch["attention_mask"].bool()
    parts = {"embedding": (0, 0), "hidden_1": (1, 2), "hidden_2": (2, 4)}
    # Rate 0 of the encoder is not that of the projections, but these move after the first loss only.
    initial = solvers().projections
    for name, (s, t) in parts.items():
        projected = initial.module[name](ours.hidden_states[s])[valid]
        expected = (projected - theirs.hidden_states[t][valid]).square().mean().item()
        assert entry[f"loss_{name}"] == pytest.approx(expected, rel=1e-4), name
    total = 0.9 * (0.3 * entry["loss_soft"] + 0.7 * entry["loss_hard"]) + 0.7 * entry["loss_embedding"]
    total += 2.0 * entry["loss_hidden_1"] + 0.5 * entry["loss_hidden_2"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)


def test_parts_without_weight_are_not_computed(solvers):
    trainer = solvers(soft_label_weight=0.0, embedding_weight=0.0, layer_mapping="2:4", max_steps=1)
    trainer.train()
    assert {name for name in training_logs(trainer)[0] if name.startswith("loss")} == {
        "loss",
        "loss_hard",
        "loss_hidden_2",
    }
    trainer = solvers(prediction_weight=0.0, hidden_loss=None, max_steps=1)
    trainer.train()
    assert {name for name in training_logs(trainer)[0] if name.startswith("loss")} == {"loss", "loss_embedding"}


def test_logged_parts_are_means_over_steps_and_accumulated_batches(solvers):
    fields = {"learning_rate": 0.0, "decoder_learning_rate": 0.0, "projection_learning_rate": 0.0}
    every = solvers(per_device_train_batch_size=4, **fields)
    every.train()
    once = solvers(per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=3, **fields)
    once.train()
    (summary,), steps = training_logs(once), training_logs(every)
    assert len(steps) == 6
    assert summary["loss_hard"] == pytest.approx(sum(entry["loss_hard"] for entry in steps) / 6, rel=1e-5)
    assert summary["loss"] == pytest.approx(sum(entry["loss"] for entry in steps) / 6, rel=1e-2)


@pytest.mark.parametrize("kind", ["solvers", "others"])
def test_accumulation_changes_nothing(kind, request):
    make = request.getfixturevalue(kind)
    runs = []
    for size, steps in ((8, 1), (4, 2)):
        trainer = make(per_device_train_batch_size=size, gradient_accumulation_steps=steps, num_train_epochs=2)
        trainer.train()
        runs.append((training_logs(trainer), trainer.model.state_dict()))
    assert_same_training(runs, abs=1e-6)


def test_evaluation_is_the_students_own(solvers):
    trainer = solvers(eval_strategy="epoch")
    trainer.train()
    within = next(entry for entry in trainer.state.log_history if "eval_loss" in entry)
    after = trainer.evaluate()
    assert within["eval_loss"] == after["eval_loss"]
    assert {"eval_answer_accuracy", "eval_answer_accuracy_low"} <= set(after)
