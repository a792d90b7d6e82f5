"""Costs of a distillation before it is run."""

import copy
import re
from types import SimpleNamespace

import pytest

from hf_mwp import DistillationConfig, DistillationTrainer, SolverDistillationConfig
from hf_mwp.commands import estimating
from hf_mwp.commands.building.student import StudentArguments, TeacherArguments
from hf_mwp.commands.estimating import STEPS, WARM_UP, Estimate, estimate_distillation, measure
from hf_mwp.commands.main import main
from hf_mwp.commands.tasks.data_options import TaskArguments
from hf_mwp.utils.option import option_values
from tests.tiny import tiny_dataset, tiny_processor, tiny_solver


def test_costs_of_the_whole_run():
    each = Estimate(1000, 32, 3.0, -1, 0.5, 0.01, 200.0, 60.0, None, 10**9)
    # 32 steps an epoch; 96 steps at half a second, 1,000 rows in the cache, and three evaluations.
    costs = each.of_corpus()
    assert (costs["rows"], costs["steps"], costs["cache_bytes"], costs["peak_bytes"]) == (1000, 96, 200_000, 10**9)
    assert costs["hours"] * 3600 == pytest.approx(48 + 10 + 180) and costs["cache_hours"] * 3600 == pytest.approx(10)
    large = each.of_corpus(100)
    assert (large["steps"], large["cache_bytes"]) == (9375, 20_000_000)
    assert large["hours"] * 3600 == pytest.approx(9375 / 2 + 1000 + 180)
    assert large["peak_bytes"] - 10**9 == 99_000 * 150


def test_steps_that_are_given_do_not_grow():
    each = Estimate(1000, 32, 3.0, 500, 0.5, 0.0, 0.0, 60.0, 100, 0)
    assert each.of_corpus(100)["steps"] == 500
    assert each.of_corpus(100)["hours"] * 3600 == pytest.approx(250 + 5 * 60)


@pytest.mark.parametrize("cached", [False, True])
def test_a_trainer_is_measured(tmp_path, cached):
    processor = tiny_processor(max_length=64)
    options = {"max_steps": STEPS + WARM_UP, "per_device_train_batch_size": 2, "use_cpu": True, "report_to": "none"}
    args = DistillationConfig(
        str(tmp_path), cache_teacher_outputs=cached, save_strategy="no", eval_strategy="no", **options
    )
    rows = tiny_dataset(60)
    trainer = DistillationTrainer(
        tiny_solver(processor),
        tiny_solver(processor, layers=3),
        args,
        train_dataset=rows,
        eval_dataset=tiny_dataset(6),
        processing_class=processor,
    )
    plan = SimpleNamespace(eval_strategy="epoch", eval_steps=None, num_train_epochs=2, max_steps=-1)
    each = measure(trainer, plan)
    assert (each.rows, each.rows_per_step, trainer.state.global_step) == (60, 2, STEPS + WARM_UP)
    assert len(trainer.train_dataset) == 46 and max(trainer.train_dataset["length"]) == max(
        processor.prepare_dataset(rows)["length"]
    )
    assert each.step_seconds > 0 and each.evaluation_seconds > 0 and each.peak_bytes > 50 * 2**20
    assert (each.cache_bytes > 100, each.cache_seconds > 0) == (cached, cached)
    assert each.of_corpus()["steps"] == 60


def test_the_command_leaves_nothing(problems, solver_folder, tmp_path, capsys):
    argv = ["distill", "--teacher", str(solver_folder), "--dataset", str(problems), "--student_layers", "1"]
    argv += ["--output_dir", str(tmp_path / "run"), "--use_cpu", "--cache_teacher_outputs", "true"]
    assert main([*argv, "--estimate", "--num_train_epochs", "4", "--per_device_train_batch_size", "4"]) == 0
    told = capsys.readouterr().out
    # 36 problems in nine steps an epoch; 3,600 in 900.
    assert re.search(r" 36 .* 36 ", told) and re.search(r" 3,600 .* 3,600 ", told) and "cache, GB" in told
    assert "train_runtime" not in told
    assert not (tmp_path / "run").exists()


def test_an_estimate_opens_no_repository(problems, solver_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(DistillationTrainer, "init_hf_repo", lambda self: pytest.fail("a repository was opened"))
    config = SolverDistillationConfig(str(tmp_path / "run"), use_cpu=True, push_to_hub=True, hub_strategy="end")
    monkeypatch.setattr(estimating, "measure", lambda trainer, plan: trainer.args.push_to_hub)
    options = (
        TaskArguments(str(problems)),
        TeacherArguments([str(solver_folder)]),
        StudentArguments(student_layers="1"),
        config,
    )
    assert estimate_distillation(*options) is False and config.push_to_hub


def test_the_options_can_be_used_again_for_the_distillation(problems, solver_folder, tmp_path, monkeypatch):
    config = SolverDistillationConfig(str(tmp_path / "run"), use_cpu=True, eval_strategy="epoch")
    options = (TaskArguments(str(problems)), TeacherArguments([str(solver_folder)]), StudentArguments(), config)
    before, measured = copy.deepcopy(option_values(*options)), []
    monkeypatch.setattr(estimating, "make_distillation", lambda task, teacher, student, own, reporter: own)
    monkeypatch.setattr(estimating, "measure", lambda own, plan: measured.append((own.max_steps, plan.max_steps)))
    estimate_distillation(*options)
    assert measured == [(STEPS + WARM_UP, -1)] and option_values(*options) == before
