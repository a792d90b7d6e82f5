"""Other solvers than one with a tree decoder go wherever solvers go, without a change there."""

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
from tests.solver.models.flat_solver import flat_solver, with_flat_decoder
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


QUIET = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1}


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("make", [with_flat_decoder, flat_solver])
def test_a_flat_solver_is_trained_evaluated_saved_loaded_and_asked(make, processor, tmp_path):
    solver = make(processor)
    assert isinstance(solver, Solver)
    rates = {"learning_rate": 1e-3, "decoder_learning_rate": 1e-2}
    args = SolverTrainingConfig(str(tmp_path), num_train_epochs=8, per_device_train_batch_size=8, **rates, **QUIET)
    trainer = SolverTrainer(
        solver, args, train_dataset=tiny_rows(), eval_dataset=tiny_rows(6), processing_class=processor
    )
    assert "trees" not in next(iter(trainer.get_train_dataloader()))
    trainer.train()
    assert losses(trainer)[-1] < losses(trainer)[0]
    of_decoder = {id(weight) for module in solver.decoding_modules for weight in module.parameters()}
    for group in trainer.optimizer.param_groups:
        for weight in group["params"]:
            assert group["initial_lr"] == (1e-2 if id(weight) in of_decoder else 1e-3)
    metrics = trainer.evaluate()
    assert 0 <= metrics["eval_answer_accuracy"] <= 1 and math.isfinite(metrics["eval_loss"])

    trainer.save_model()
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is type(solver)
    inputs = processor(["小明有4个苹果，又买了2个，一共有几个？"])
    found = loaded.solve(inputs["input_ids"], inputs["attention_mask"], inputs["number_positions"])
    asked = pipeline("math-word-problem", model=str(tmp_path))
    (answer,) = asked("小明有4个苹果，又买了2个，一共有几个？")
    assert answer["prefix"] == processor.decode(found.sequences[0, 0]).to_prefix()
    best, other = asked("小明有4个苹果，又买了2个，一共有几个？", top_k=2, num_beams=4)
    assert best["score"] >= other["score"] > 0
    card = build_model_card(loaded, "flat", figures=())
    assert f"{loaded.decoder_title}; " in str(card) and 'pipeline("math-word-problem", model="flat")' in str(card)


@pytest.mark.parametrize("make", [with_flat_decoder, flat_solver])
def test_a_flat_solver_is_the_start_of_another_training(make, processor, tmp_path):
    for part in (make(processor), processor):
        part.save_pretrained(tmp_path)
    solver, again = build_solver([], solver=str(tmp_path))
    assert isinstance(solver, Solver) and again.vocabulary == processor.vocabulary
    encoder = load_encoder(str(tmp_path), None, with_heads=True)
    assert type(encoder) is type(solver.encoder)


@pytest.mark.parametrize("loss", ["kd", "dkd"])
@pytest.mark.parametrize("make", [with_flat_decoder, flat_solver])
def test_a_flat_solver_is_distilled_with_and_without_a_cache(make, loss, processor, tmp_path):
    found = []
    for cached in (False, True):
        student, teacher = make(processor), make(processor, layers=4, hidden_size=24, seed=1)
        args = DistillationConfig(
            str(tmp_path),
            prediction_loss=loss,
            cache_teacher_outputs=cached,
            per_device_train_batch_size=8,
            num_train_epochs=2,
            **QUIET,
        )
        trainer = DistillationTrainer(
            student, teacher, args, train_dataset=tiny_rows(), eval_dataset=tiny_rows(6), processing_class=processor
        )
        trainer.train()
        assert "eval_answer_accuracy" in trainer.evaluate()
        found.append(losses(trainer))
    assert found[0] == pytest.approx(found[1], rel=2e-3)
    assert found[0][-1] < found[0][0]


def test_the_command_line_loads_and_measures_a_solver_of_any_class(processor, problems, tmp_path, capsys):
    folder, encoder = tmp_path / "flat", tmp_path / "encoder"
    solver = flat_solver(processor)
    for part in (solver, processor):
        part.save_pretrained(folder)
    loaded, own = load_solver(folder)
    assert type(loaded) is type(solver) and own.vocabulary == processor.vocabulary
    predictions = tmp_path / "run" / "predictions.jsonl"
    options = ["--dataset", str(problems), "--output_dir", str(predictions.parent), "--json"]
    assert main(["evaluate", "--model", str(folder), *options]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["reports"]["all problems"]["num_problems"] == len(predictions.read_text().splitlines()) == 9
    check_folder(str(folder), solver=True)

    solver.encoder.save_pretrained(encoder)
    options[3] = str(tmp_path / "other")
    assert main(["evaluate", "--model", str(encoder), *options]) == 1
    assert "'mwp_student'" in capsys.readouterr().err


def test_a_student_is_cut_from_a_solver_with_another_decoder(processor):
    teacher = with_flat_decoder(processor)
    student = cut_student(teacher, 1)
    assert type(student.decoder) is type(teacher.decoder)
    torch.testing.assert_close(student.decoder.state_dict(), teacher.decoder.state_dict())


def test_solvers_of_other_symbols_are_no_teachers(processor, tmp_path):
    other = tiny_processor()
    other.vocabulary = other.vocabulary.with_constants(["3.14"])
    with pytest.raises(ValueError, match=r"constants.*\['1'\].*\['1', '3.14'\]"):
        DistillationTrainer(
            flat_solver(processor),
            tiny_solver(other),
            DistillationConfig(str(tmp_path), **QUIET),
            train_dataset=tiny_rows(),
            processing_class=processor,
        )
