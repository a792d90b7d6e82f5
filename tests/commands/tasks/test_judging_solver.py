"""A solver that judges candidates, from training to its card, by the commands."""

import json
import shutil

import pytest
from transformers import pipeline

from hf_mwp.commands.building import load_solver
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.commands.main import main
from hf_mwp.solver.models import AthenaModel, MwpSolver
from hf_mwp.utils.usage_error import UsageError


@pytest.fixture(scope="module")
def folder(encoder, problems, tmp_path_factory):
    """One that `hf-mwp train` made."""
    folder = tmp_path_factory.mktemp("judging") / "solver"
    argv = ["train", "--encoder", str(encoder), "--decoder", "athena", "--dataset", str(problems), "--max_steps=40"]
    argv += ["--decoder_config", json.dumps({"max_thoughts": 24, "max_depth": 3}), "--learning_rate=0.005"]
    argv += ["--per_device_train_batch_size=12", "--report_to=none", "--use_cpu", "--dropout=0"]
    argv += ["--lr_scheduler_type=constant", "--eval_strategy=no", "--save_strategy=no"]
    assert main([*argv, "--output_dir", str(folder)]) == 0
    return folder


def test_it_is_trained_and_evaluated(folder, problems, tmp_path):
    assert isinstance(MwpSolver.from_pretrained(folder).decoder, AthenaModel)
    trained = json.loads((folder / "metrics.json").read_text("utf-8"))["test"]
    written = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(folder), "--dataset", str(problems), "--device=cpu", "--num_beams=1"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    records = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    right = sum(record["answer_correct"] for record in records)
    assert right == trained["reports"]["all problems"]["answer_accuracy"] * len(records)


def test_it_labels_problems_and_gets_a_reranker(folder, problems, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    rows = [{"id": "1", "text": "小明有4个苹果，又买了2个，一共有几个？", "answer": "4"}]
    (tmp_path / "answers.jsonl").write_text(json.dumps(rows[0], ensure_ascii=False) + "\n", "utf-8")
    argv = ["--model", str(model), "--num_beams=8"]
    main(["pseudo-label", *argv, "--problems", str(tmp_path / "answers.jsonl"), "--output_dir", str(tmp_path / "run")])
    (labelled,) = map(json.loads, (tmp_path / "run" / "labelled.jsonl").read_bytes().splitlines())
    assert labelled["answer"] == "4" and labelled["log_probability"] < 0
    assert main(["rerank", *argv, "--dataset", str(problems)]) == 0
    argv = ["evaluate", "--model", str(model), "--dataset", str(problems), "--device=cpu"]
    assert main([*argv, "--output_dir", str(tmp_path / "evaluated")]) == 0


def test_a_search_at_its_limit_is_said_in_the_result(folder, tmp_path, capsys):
    text = "小明有4个苹果，又买了2个，一共有几个？"
    solver, processor = load_solver(str(folder))
    solve = pipeline("math-word-problem", model=solver, processor=processor)
    solver.decoder.config.max_thoughts = 0
    (free,) = solve(text)
    assert "capped" not in free and "warning" not in free
    solver.decoder.config.max_candidates = 2
    (result,) = solve(text)
    assert result["capped"] is True and "candidate limit" in result["warning"]
    solver.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    main(["solve", "--model", str(tmp_path), "--num_beams=1", text])
    assert "candidate limit" in capsys.readouterr().out
    main(["solve", "--model", str(tmp_path), "--num_beams=1", "--json", text])
    assert json.loads(capsys.readouterr().out)["capped"] is True


def test_its_card_names_the_decoder(folder, tmp_path):
    assert main(["card", "--model", str(folder), "--output_dir", str(tmp_path)]) == 0
    assert "thought-expansion decoder (ATHENA)" in (tmp_path / "README.md").read_text("utf-8")
    assert MwpSolver.from_pretrained(tmp_path).decoder.config == MwpSolver.from_pretrained(folder).decoder.config


def test_the_runtime_has_no_search_for_it(folder, tmp_path, capsys):
    assert main(["solve", "--model", str(folder), "--runtime", "numpy", "4 and 2"]) != 0
    assert "--runtime torch" in capsys.readouterr().err
    with pytest.raises(UsageError, match="ATHENA.*--decoder gts"):
        export_solver(ExportArguments(str(folder), str(tmp_path / "out")))
