import json

import pytest

from hf_mwp.cli.main import main
from hf_mwp.metrics import FAILURE_REASONS


def test_tables_and_predictions(solver_folder, problems, tmp_path, capsys):
    path = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--predictions", str(path)]
    assert main(argv) == 0
    shown = " ".join(capsys.readouterr().out.split())  # a title with long paths is wrapped
    for part in ("all problems", "masked text in train", "Why answers are wrong", "rule 'annotated'"):
        assert part in shown
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 9
    assert all(record["reason"] == "correct" or record["reason"] in FAILURE_REASONS for record in records)
    assert {"text", "equation", "answer", "prediction", "value", "masked_text_in_train"} <= records[0].keys()
    # All tiny problems come from six templates, so every masked text occurs in the training part.
    assert all(record["masked_text_in_train"] for record in records)


def test_json_agrees_with_the_records(solver_folder, problems, tmp_path, capsys):
    path = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--predictions", str(path)]
    assert main([*argv, "--json", "--num_beams=2", "--rule=peers", "--split=validation", "--batch_size=3"]) == 0
    result = json.loads(capsys.readouterr().out)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    right = sum(record["answer_correct"] for record in records)
    assert result["reports"]["all problems"]["answer_accuracy"] == pytest.approx(right / len(records))
    assert (result["num_beams"], result["rule"], len(records)) == (2, "peers", 8)


def test_batches_do_not_change_the_answers(solver_folder, problems, tmp_path):
    texts = []
    for size in (1, 64):
        path = tmp_path / f"{size}.jsonl"
        argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--predictions", str(path)]
        assert main([*argv, f"--batch_size={size}"]) == 0
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        texts.append([(record["id"], record["prediction"]) for record in records])
    assert texts[0] == texts[1]


def test_a_part_that_is_not_there(solver_folder, problems, tmp_path, capsys):
    only = tmp_path / "only.jsonl"
    only.write_text((problems / "test.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(only), "--split=validation"]
    assert main([*argv, "--validation_fraction=0"]) == 1
    assert "has no 'validation' part" in capsys.readouterr().err


def test_damaged_data_is_named(solver_folder, tmp_path, capsys):
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "1 和 2", "answer": "3"}\n{"text": "1 和', encoding="utf-8")
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(path), "--predictions", str(tmp_path / "p")]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert "test.jsonl" in error and "line 2" in error
