"""Solvers without a tree decoder are used like all solvers."""

import json
import math

import pytest
import torch
from transformers import AutoModel, pipeline

from hf_mwp.commands.building import build_solver, load_solver
from hf_mwp.commands.building.encoder import load_encoder
from hf_mwp.commands.building.model_sources import check_folder
from hf_mwp.commands.hub import build_model_card
from hf_mwp.commands.main import main
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from hf_mwp.solver.models import Solver
from hf_mwp.solver.models.cut_student import cut_student
from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
from tests.slow_parameters import slow_after, slow_except
from tests.solver.models.flat_solver import flat_solver, with_flat_decoder
from tests.solver.training.conftest import QUIET
from tests.tiny import tiny_processor, tiny_rows


FIELDS = {"save_strategy": "no", "logging_steps": 1, "per_device_train_batch_size": 8, **QUIET}
TEXT = "小明有4个苹果，又买了2个，一共有几个？"


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("build", slow_except([with_flat_decoder, flat_solver], flat_solver))
def test_flat_solver_is_trained_evaluated_saved_and_loaded(build, processor, tmp_path):
    solver = build(processor)
    assert isinstance(solver, Solver)
    rates = {"learning_rate": 1e-3, "decoder_learning_rate": 1e-2}
    args = SolverTrainingConfig(str(tmp_path), num_train_epochs=3, **rates, **FIELDS)
    data = {"train_dataset": tiny_rows(), "eval_dataset": tiny_rows(6)}
    trainer = SolverTrainer(solver, args, processing_class=processor, **data)
    assert "trees" not in next(iter(trainer.get_train_dataloader()))
    trainer.train()
    assert losses(trainer)[-1] < losses(trainer)[0]
    decoder_weights = set(solver.decoding_modules[0].parameters())
    for group in trainer.optimizer.param_groups:
        for weight in group["params"]:
            assert group["initial_lr"] == (1e-2 if weight in decoder_weights else 1e-3)
    metrics = trainer.evaluate()
    assert 0 <= metrics["eval_answer_accuracy"] <= 1
    assert math.isfinite(metrics["eval_loss"])

    trainer.save_model()
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is type(solver)
    inputs = processor([TEXT])
    solved = loaded.solve(inputs["input_ids"], inputs["attention_mask"], inputs["number_positions"])
    solve = pipeline("math-word-problem", model=str(tmp_path))
    (answer,) = solve(TEXT)
    assert answer["prefix"] == processor.decode(solved.sequences[0, 0]).to_prefix()
    assert len(solve(TEXT, top_k=2, num_beams=4)) == 2
    card = str(build_model_card(loaded, "flat", figures=()))
    assert loaded.decoder_title in card

    # Another training starts from it.
    started, started_processor = build_solver([], solver=str(tmp_path))
    assert type(started) is type(solver)
    assert started_processor.vocabulary == processor.vocabulary
    encoder = load_encoder(str(tmp_path), None, with_heads=True)
    assert type(encoder) is type(solver.encoder)


@pytest.mark.parametrize(("build", "loss"), slow_after(1, [(with_flat_decoder, "dkd"), (flat_solver, "kd")]))
def test_flat_solver_is_distilled_with_and_without_a_cache(build, loss, processor, tmp_path):
    runs = []
    for is_cached in (False, True):
        teacher = build(processor, num_layers=4, hidden_size=24, seed=1)
        args = DistillationConfig(
            str(tmp_path), prediction_loss=loss, cache_teacher_outputs=is_cached, num_train_epochs=1, **FIELDS
        )
        data = {"train_dataset": tiny_rows(), "eval_dataset": tiny_rows(6)}
        trainer = DistillationTrainer(build(processor), teacher, args, processing_class=processor, **data)
        trainer.train()
        assert "eval_answer_accuracy" in trainer.evaluate()
        runs.append(losses(trainer))
    assert runs[0] == pytest.approx(runs[1], rel=2e-3)


@pytest.mark.slow
def test_command_line_loads_and_evaluates_a_flat_solver(processor, problems, tmp_path, capsys):
    folder = tmp_path / "flat"
    flat_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    check_folder(str(folder), solver=True)
    loaded, loaded_processor = load_solver(folder)
    assert type(loaded) is type(flat_solver(processor))
    assert loaded_processor.vocabulary == processor.vocabulary
    options = ["--dataset", str(problems), "--output_dir", str(tmp_path / "run"), "--json"]
    assert main(["evaluate", "--model", str(folder), *options]) == 0
    results = json.loads(capsys.readouterr().out)
    predictions = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    assert results["reports"]["all problems"]["num_problems"] == len(predictions) == 9


def test_student_is_cut_from_a_solver_with_a_flat_decoder(processor):
    teacher = with_flat_decoder(processor)
    student = cut_student(teacher, 1)
    assert type(student.decoder) is type(teacher.decoder)
    torch.testing.assert_close(student.decoder.state_dict(), teacher.decoder.state_dict())
