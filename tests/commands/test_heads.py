import json
import re
from pathlib import Path

import pytest

from hf_mwp.commands import heads
from hf_mwp.commands.heads import HeadsArguments
from hf_mwp.commands.main import main
from hf_mwp.commands.terminal.console import make_console
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.solver.models import MwpSolver


def test_heads_of_a_solver_are_scored_and_drawn(problems, solver_folder, tmp_path, capsys):
    argv = ["heads", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main([*argv, "--num_batches=1", "--batch_size=4"]) == 0
    kept = json.loads((tmp_path / "heads.json").read_text())
    counts = [parts.num_heads for parts in layer_parts(MwpSolver.from_pretrained(solver_folder))]
    assert [len(row) for row in kept["scores"]] == counts
    # Norm and entropy on a scale from 0 to 1 each, half and half.
    assert all(0 <= score <= 1 for row in kept["scores"] for score in row)
    assert (kept["importance"], kept["texts"]) == ("combined", 4)
    assert (tmp_path / "heads.png").read_bytes().startswith(b"\x89PNG")
    assert f"{kept['scores'][0][0]:.2f}" in capsys.readouterr().out


def test_small_scores_of_twelve_heads_fit_into_100_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    scores = [[0.00123 * (head + 1) for head in range(11)] + [None], [7.3e-5] * 12]
    monkeypatch.setattr(heads, "score_heads", lambda *options: (Path("runs/heads"), scores))
    heads.run(make_console(), HeadsArguments(model="teacher", importance="gradient"), None)
    shown = capsys.readouterr().out
    assert "units of 1e-2" in shown and "0.12" in shown and "1.35" in shown and "0.01" in shown and "…" not in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_problems_without_an_equation_are_left_out(problems, solver_folder, tmp_path):
    """Also if they would fill a batch."""
    rows = [json.loads(line) for line in (problems / "test.jsonl").open(encoding="utf-8")]
    answers_only = [{**row, "id": f"no-{row['id']}", "equation": None} for row in rows[:4]]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, [*answers_only, *rows[:3]])), "utf-8")
    argv = ["heads", "--model", str(solver_folder), "--dataset", str(tmp_path), "--split=test", "--batch_size=4"]
    assert main([*argv, "--importance=gradient", "--output_dir", str(tmp_path / "heads")]) == 0
    kept = json.loads((tmp_path / "heads" / "heads.json").read_text())
    assert kept["texts"] == 3 and any(score > 0 for row in kept["scores"] for score in row)


@pytest.mark.parametrize("importance", ["norm", "peak", "random"])
def test_each_name_is_a_score(importance, problems, solver_folder, tmp_path):
    argv = ["heads", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main([*argv, "--importance", importance, "--num_batches=1", "--batch_size=2"]) == 0
    assert json.loads((tmp_path / "heads.json").read_text())["importance"] == importance


def test_what_is_wrong_is_named(problems, solver_folder, capsys):
    assert main(["heads", "--dataset", str(problems)]) == 1
    assert "`model`" in capsys.readouterr().err
    assert main(["heads", "--model", str(solver_folder), "--dataset", str(problems), "--split", "dev"]) == 1
    assert re.search("'dev'.* train, validation, test.*--split", capsys.readouterr().err)
    argv = ["heads", "--model", str(solver_folder), "--dataset", str(problems)]
    assert main([*argv, "--output_dir", str(solver_folder / "config.json")]) == 1
    assert re.search(r"config\.json .*another output folder", capsys.readouterr().err)
