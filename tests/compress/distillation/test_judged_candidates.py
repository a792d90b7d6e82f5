"""Distillation of a solver that judges candidates."""

import copy

import pytest
import torch

from hf_mwp.commands.building import make_student
from hf_mwp.compress.distillation.ensemble_teacher import EnsembleTeacher
from hf_mwp.compress.distillation.features import read_features
from hf_mwp.compress.distillation.objectives import DKD, HiddenStates, SoftLabels
from hf_mwp.compress.pruning import HeadPruningCallback
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.models.solver_kind import SOLVER
from tests.compress.trainers.distilling import copy_of, training_logs
from tests.tiny import tiny_athena_solver, tiny_processor, tiny_rows, tiny_solver


FIELDS = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "logging_steps": 1, "learning_rate": 1e-3}
QUIET = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no"}


@pytest.fixture
def processor():
    return tiny_processor()


def distil(folder, processor, teacher, student, objectives=None, callbacks=(), **fields):
    args = DistillationConfig(output_dir=str(folder), **FIELDS, **QUIET, **fields)
    return DistillationTrainer(
        model=student,
        teacher_model=teacher,
        args=args,
        objectives=objectives,
        train_dataset=tiny_rows(10),
        processing_class=processor,
        callbacks=list(callbacks),
    )


def teacher_and_student(processor):
    teacher = tiny_athena_solver(processor, layers=4, seed=1).eval()
    return teacher, make_student(teacher, processor, student_layers="0,2")


@pytest.mark.parametrize("bf16", [False, True])
def test_live_and_cached_teachers_teach_the_same(processor, tmp_path, bf16):
    teacher, start = teacher_and_student(processor)
    runs = []
    for cached in (False, True):
        student = copy.deepcopy(start)
        fields = {"cache_teacher_outputs": cached, "bf16": bf16}
        trainer = distil(tmp_path / str(cached), processor, teacher, student, **fields)
        trainer.train()
        runs.append((training_logs(trainer), copy_of(student)))
    cache = trainer.teacher_source.cache
    assert cache.layout.listed == ["logits", "answer_logits"] and cache.layout.logits is None
    names = ["loss_soft", "loss_soft_answer", "loss_hard", "loss_hidden_1"]
    for live, stored in zip(runs[0][0], runs[1][0], strict=True):
        # The cache keeps fp16.
        assert [live[name] for name in names] == pytest.approx([stored[name] for name in names], rel=2e-2, abs=2e-3)
    assert runs[0][0][-1]["loss_soft"] > 0.1 and runs[0][0][-1]["loss_soft_answer"] > 1e-4


def test_contexts_of_candidates_are_learned_live_and_from_the_cache(processor, tmp_path):
    teacher = tiny_athena_solver(processor, layers=4, seed=1).eval()
    start = tiny_athena_solver(processor, hidden_size=12)
    fields = {"hidden_loss": "mse+cka", "decoder_layer_mapping": "1:1", "embedding_weight": 0.5}
    runs = []
    for cached in (False, True):
        student = copy.deepcopy(start)
        trainer = distil(tmp_path / str(cached), processor, teacher, student, cache_teacher_outputs=cached, **fields)
        trainer.train()
        runs.append(training_logs(trainer))
    assert trainer.projections.reads == {
        "mse_1": "hidden_1", "mse_2": "hidden_2", "embedding": "hidden_0",
        "decoder_mse_1": "decoder_hidden_1", "decoder_embedding": "decoder_hidden_0",
    }  # fmt: skip
    assert trainer.teacher_source.cache.layout.states["decoder_hidden_1"] == 16
    names = ["loss_decoder_mse_1", "loss_decoder_cka_1", "loss_decoder_embedding"]
    for live, stored in zip(*runs, strict=True):
        # The cache keeps fp16.
        assert [live[name] for name in names] == pytest.approx([stored[name] for name in names], rel=2e-2, abs=2e-3)
    assert runs[0][-1]["loss_decoder_mse_1"] < runs[0][0]["loss_decoder_mse_1"]


def test_the_loss_on_contexts_is_a_mean_over_the_candidates_of_each_problem(processor):
    teacher, student = (tiny_athena_solver(processor, seed=seed).eval() for seed in (1, 2))
    columns = processor.encode(tiny_rows(6), with_labels=True, skipped=[])
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows[2] = rows[2] | {"labels": processor.vocabulary.encode(Expression.from_infix("0.5^N0"))}
    batch = student.make_collator(processor)(rows)
    assert batch["plans"].skipped == 1 and not batch["decoder_state_mask"][2].any()
    objective = HiddenStates(layer_mapping=[(1, 1)], stack="decoder")
    with torch.no_grad():
        ours, theirs = (read_features(model, batch, objective.options) for model in (student, teacher))
        objective.setup(ours, theirs, batch)
        (loss,) = objective.losses(ours, theirs, batch).values()
        (count,) = objective.num_items(batch).values()
        packed = []
        for model in (student, teacher):
            states = model.encode(batch["input_ids"], batch["attention_mask"]).last_hidden_state
            names = ("attention_mask", "number_positions", "question_positions", "plans")
            packed.append(model.decoder(states, **{name: batch[name] for name in names}).contexts)
    assert count == len(packed[0]) == len(batch["plans"].problems)
    torch.testing.assert_close(loss, torch.nn.functional.mse_loss(*packed))
    with pytest.raises(ValueError, match="no shifted states"):
        HiddenStates(stack="decoder", decoder_mask="shifted").setup(ours, theirs, batch)


def test_a_student_that_is_its_teacher_has_nothing_to_learn_from_it(processor, tmp_path):
    teacher = tiny_athena_solver(processor).eval()
    trainer = distil(tmp_path, processor, teacher, copy.deepcopy(teacher), objectives=[SoftLabels()], max_steps=1)
    trainer.train()
    first = training_logs(trainer)[0]
    assert first["loss_soft"] == pytest.approx(0, abs=1e-5) and first["loss_soft_answer"] == pytest.approx(0, abs=1e-5)


def test_decoupled_distillation_is_refused(processor, tmp_path):
    teacher, student = teacher_and_student(processor)
    with pytest.raises(ValueError, match="judged candidates.*SoftLabels"):
        distil(tmp_path, processor, teacher, student, objectives=[DKD()])


def test_decoders_that_cannot_be_compared_are_named(processor):
    teacher = tiny_athena_solver(processor)
    with pytest.raises(ValueError, match="positions of an expression.*judged candidates"):
        SOLVER.check_teacher(tiny_solver(processor), teacher)
    with pytest.raises(ValueError, match=r"transforms=\['NEG', 'INV'\]"):
        SOLVER.check_teacher(tiny_athena_solver(processor, transforms=["NEG", "INV"]), teacher)
    with pytest.raises(ValueError, match="merge_numbers=False"):
        SOLVER.check_teacher(tiny_athena_solver(processor, merge_numbers=False), teacher)


def test_an_ensemble_judges_by_the_mean_probability(processor):
    members = [tiny_athena_solver(processor, seed=seed).eval() for seed in range(2)]
    columns = processor.encode(tiny_rows(6), with_labels=True, skipped=[])
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    batch = members[0].make_collator(processor)(rows)
    with torch.no_grad():
        alone = [member(**batch) for member in members]
        mean = EnsembleTeacher(members)(**batch)
    real = alone[0].logits > torch.finfo(torch.float32).min
    expected = sum(each.logits.sigmoid() for each in alone) / 2
    torch.testing.assert_close(mean.logits.sigmoid()[real], expected[real])
    assert (mean.logits[~real] == torch.finfo(torch.float32).min).all() and not real.all()
    expected = sum(each.answer_logits.softmax(-1) for each in alone) / 2
    torch.testing.assert_close(mean.answer_logits.softmax(-1), expected)


def test_heads_are_pruned_while_it_is_distilled(processor, tmp_path):
    teacher, student = teacher_and_student(processor)
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, calibration_examples=8, mode="slice")
    trainer = distil(tmp_path, processor, teacher, student, callbacks=[callback], cache_teacher_outputs=True)
    trainer.train()
    trainer.save_model()
    small = MwpSolver.from_pretrained(tmp_path)
    assert sum(small.config.encoder_config.heads_per_layer) == 2
    batch = processor([row["text"] for row in tiny_rows(3)])
    expected = trainer.model.eval().solve(**batch, num_beams=2)
    found = small.solve(**batch, num_beams=2)
    assert torch.equal(found.sequences, expected.sequences) and found.capped.shape == (3,)
