"""Distillation of a solver that judges candidates."""

import copy

import pytest
import torch
from torch.nn import functional

from hf_mwp.commands.building import make_student
from hf_mwp.compress.distillation.ensemble_teacher import EnsembleTeacher
from hf_mwp.compress.distillation.objectives import DKD, HiddenStates, SoftLabels
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.models.solver_kind import SOLVER
from tests.compress.trainers.distilling import QUIET, encoded_rows, losses_of, set_up, training_logs
from tests.slow_parameters import slow_after
from tests.tiny import tiny_athena_solver, tiny_processor, tiny_rows, tiny_solver


FIELDS = QUIET | {"save_strategy": "no", "per_device_train_batch_size": 4, "logging_steps": 1, "learning_rate": 1e-3}


@pytest.fixture
def processor():
    return tiny_processor()


def trainer_of(folder, processor, teacher, student, objectives=None, callbacks=None, **fields):
    return DistillationTrainer(
        student,
        teacher,
        DistillationConfig(str(folder), **({"num_train_epochs": 1} | FIELDS | fields)),
        objectives=objectives,
        train_dataset=tiny_rows(10),
        processing_class=processor,
        callbacks=callbacks,
    )


def live_and_cached(folder, processor, teacher, student, **fields):
    """The logs of trainings with a live and a cached teacher, and the trainer of the latter."""
    logs = []
    for cached in (False, True):
        fields["cache_teacher_outputs"] = cached
        trainer = trainer_of(folder / str(cached), processor, teacher, copy.deepcopy(student), **fields)
        trainer.train()
        logs.append([losses_of(entry) for entry in training_logs(trainer)])
    return logs, trainer


def teacher_and_student(processor):
    teacher = tiny_athena_solver(processor, layers=4, seed=1).eval()
    return teacher, make_student(teacher, processor, student_layers="0,2")


@pytest.mark.parametrize("bf16", slow_after(1, [False, True]))
def test_a_cached_teacher_equals_a_live_one(processor, tmp_path, bf16):
    teacher = tiny_athena_solver(processor, layers=4, seed=1).eval()
    student = tiny_athena_solver(processor)
    (live, cached), trainer = live_and_cached(tmp_path, processor, teacher, student, bf16=bf16, max_steps=2)
    layout = trainer.teacher_source.cache.layout
    assert layout.listed == ["logits", "answer_logits"]
    assert layout.logits is None
    for live_entry, cached_entry in zip(live, cached, strict=True):
        # The cache keeps fp16.
        assert live_entry == pytest.approx(cached_entry, rel=2e-2, abs=2e-3)
    assert live[-1]["loss_soft"] > 0.1
    assert live[-1]["loss_soft_answer"] > 1e-4
    assert live[-1].keys() >= {"loss_hard", "loss_hidden_1"}


@pytest.mark.slow
def test_contexts_of_candidates_are_learned_live_and_from_the_cache(processor, tmp_path):
    teacher = tiny_athena_solver(processor, layers=4, seed=1).eval()
    student = tiny_athena_solver(processor, hidden_size=12)
    fields = {"hidden_loss": "mse+cka", "decoder_layer_mapping": "1:1", "embedding_weight": 0.5}
    (live, cached), trainer = live_and_cached(tmp_path, processor, teacher, student, **fields)
    assert trainer.projections.reads == {
        "mse_1": "hidden_1", "mse_2": "hidden_2", "embedding": "hidden_0",
        "decoder_mse_1": "decoder_hidden_1", "decoder_embedding": "decoder_hidden_0",
    }  # fmt: skip
    assert trainer.teacher_source.cache.layout.states["decoder_hidden_1"] == 16
    for live_entry, cached_entry in zip(live, cached, strict=True):
        # The cache keeps fp16.
        assert live_entry == pytest.approx(cached_entry, rel=2e-2, abs=2e-3)
    assert live[0].keys() >= {"loss_decoder_cka_1", "loss_decoder_embedding"}
    assert live[-1]["loss_decoder_mse_1"] < live[0]["loss_decoder_mse_1"]


@torch.no_grad()
def test_the_loss_on_contexts_is_a_mean_over_the_candidates_of_each_problem(processor):
    student = tiny_athena_solver(processor, seed=1).eval()
    teacher = tiny_athena_solver(processor, seed=2).eval()
    rows = encoded_rows(processor, tiny_rows(6))
    rows[2]["labels"] = processor.vocabulary.encode(Expression.from_infix("0.5^N0"))
    batch = student.make_collator(processor)(rows)
    assert batch["plans"].skipped == 1
    assert not batch["decoder_state_mask"][2].any()
    objective = HiddenStates(layer_mapping=[(1, 1)], stack="decoder")
    student_features, teacher_features = set_up(objective, student, teacher, batch)
    (loss,) = objective.losses(student_features, teacher_features, batch).values()
    (num_items,) = objective.num_items(batch).values()
    contexts = []
    for model in (student, teacher):
        states = model.encode(batch["input_ids"], batch["attention_mask"]).last_hidden_state
        names = ("attention_mask", "number_positions", "question_positions", "plans")
        contexts.append(model.decoder(states, **{name: batch[name] for name in names}).contexts)
    assert num_items == len(contexts[0]) == len(batch["plans"].problems)
    torch.testing.assert_close(loss, functional.mse_loss(*contexts))
    with pytest.raises(ValueError, match="no shifted states"):
        HiddenStates(stack="decoder", decoder_mask="shifted").setup(student_features, teacher_features, batch)


def test_the_loss_of_a_student_equal_to_its_teacher_is_zero(processor):
    teacher = tiny_athena_solver(processor).eval()
    batch = teacher.make_collator(processor)(encoded_rows(processor, tiny_rows(6)))
    objective = SoftLabels()
    student_features, teacher_features = set_up(objective, copy.deepcopy(teacher), teacher, batch)
    losses = objective.losses(student_features, teacher_features, batch)
    assert losses.keys() == {"soft", "soft_answer"}
    for loss in losses.values():
        assert loss.item() == pytest.approx(0, abs=1e-5)


def test_decoupled_distillation_is_refused(processor, tmp_path):
    teacher, student = teacher_and_student(processor)
    with pytest.raises(ValueError, match="judged candidates.*SoftLabels"):
        trainer_of(tmp_path, processor, teacher, student, objectives=[DKD()])


def test_decoders_that_cannot_be_compared_are_named(processor):
    teacher = tiny_athena_solver(processor)
    with pytest.raises(ValueError, match="positions of an expression.*judged candidates"):
        SOLVER.check_teacher(tiny_solver(processor), teacher)
    with pytest.raises(ValueError, match=r"transforms=\['NEG', 'INV'\]"):
        SOLVER.check_teacher(tiny_athena_solver(processor, transforms=["NEG", "INV"]), teacher)
    with pytest.raises(ValueError, match="merge_numbers=False"):
        SOLVER.check_teacher(tiny_athena_solver(processor, merge_numbers=False), teacher)


@torch.no_grad()
def test_an_ensemble_judges_by_the_mean_probability(processor):
    members = [tiny_athena_solver(processor, seed=seed).eval() for seed in range(2)]
    batch = members[0].make_collator(processor)(encoded_rows(processor, tiny_rows(6)))
    first, second = (member(**batch) for member in members)
    mean = EnsembleTeacher(members)(**batch)
    lowest = torch.finfo(torch.float32).min
    is_candidate = first.logits > lowest
    expected = (first.logits.sigmoid() + second.logits.sigmoid()) / 2
    torch.testing.assert_close(mean.logits.sigmoid()[is_candidate], expected[is_candidate])
    assert not is_candidate.all()
    assert (mean.logits[~is_candidate] == lowest).all()
    expected = (first.answer_logits.softmax(-1) + second.answer_logits.softmax(-1)) / 2
    torch.testing.assert_close(mean.answer_logits.softmax(-1), expected)
