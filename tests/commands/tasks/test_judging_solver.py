"""A solver that judges candidates, from training to its card, by the commands."""

import json

import pytest
from transformers import pipeline

from hf_mwp.commands.building import load_solver
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.commands.main import main
from hf_mwp.solver.models import AthenaModel, MwpSolver
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import read_json, read_rows
from tests.tiny import tiny_athena_solver, tiny_processor


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


@pytest.fixture(scope="module")
def folder(encoder, problems, tmp_path_factory):
    """A solver from `hf-mwp train`."""
    folder = tmp_path_factory.mktemp("judging") / "solver"
    argv = ["train", "--encoder", str(encoder), "--decoder", "athena", "--dataset", str(problems), "--max_steps=20"]
    argv += ["--decoder_config", json.dumps({"max_thoughts": 24, "max_depth": 3}), "--learning_rate=0.005"]
    argv += ["--per_device_train_batch_size=12", "--use_cpu", "--dropout=0", "--lr_scheduler_type=constant"]
    argv += ["--eval_strategy=no", "--save_strategy=no"]
    assert main([*argv, "--output_dir", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_solver_is_trained_and_evaluated(folder, problems, tmp_path, output_of):
    assert isinstance(MwpSolver.from_pretrained(folder).decoder, AthenaModel)
    report = read_json(folder / "metrics.json")["test"]["reports"]["all problems"]
    output_of("evaluate", "--model", folder, "--dataset", problems, "--num_beams=1", "--output_dir", tmp_path)
    records = read_rows(tmp_path / "predictions.jsonl")
    num_correct = sum(record["answer_correct"] for record in records)
    assert num_correct == report["answer_accuracy"] * len(records)


@pytest.mark.slow
def test_search_at_its_limit_is_reported(folder, tmp_path, output_of):
    solver, processor = load_solver(str(folder))
    solve = pipeline("math-word-problem", model=solver, processor=processor)
    solver.decoder.config.max_thoughts = 0
    (result,) = solve(TEXT)
    assert "capped" not in result
    assert "warning" not in result
    solver.decoder.config.max_candidates = 2
    (result,) = solve(TEXT)
    assert result["capped"] is True
    assert "candidate limit" in result["warning"]
    solver.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    argv = ["solve", "--model", tmp_path, "--num_beams=1", TEXT]
    assert "candidate limit" in output_of(*argv)
    assert json.loads(output_of(*argv, "--json"))["capped"] is True


@pytest.mark.slow
def test_card_names_the_decoder(folder, tmp_path, output_of):
    output_of("card", "--model", folder, "--output_dir", tmp_path)
    assert "thought-expansion decoder (ATHENA)" in (tmp_path / "README.md").read_text("utf-8")
    assert MwpSolver.from_pretrained(tmp_path).decoder.config == MwpSolver.from_pretrained(folder).decoder.config


def test_runtime_does_not_support_the_decoder(tmp_path, error_of):
    folder = tmp_path / "untrained"
    processor = tiny_processor()
    tiny_athena_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    assert "--runtime torch" in error_of("solve", "--model", folder, "--runtime", "numpy", "4 and 2")
    with pytest.raises(UsageError, match="ATHENA.*--decoder gts"):
        export_solver(ExportArguments(str(folder), str(tmp_path / "out")))
