import re
from pathlib import Path

import pytest
import torch

from hf_mwp.commands import heads
from hf_mwp.commands.heads import HeadsArguments
from hf_mwp.commands.terminal.console import make_console
from tests.commands.folders import read_json, read_rows, write_rows
from tests.slow_parameters import slow_except


@pytest.mark.parametrize("importance", slow_except(["combined", "norm", "peak", "random"], "combined"))
def test_heads_of_a_solver_are_scored_and_drawn(importance, problems, solver_folder, tmp_path, output_of):
    argv = ["heads", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path]
    output = output_of(*argv, "--importance", importance, "--num_batches=1", "--batch_size=4")
    record = read_json(tmp_path / "heads.json")
    scores = torch.tensor(record["scores"])
    assert scores.shape == (2, 2)
    assert (record["importance"], record["texts"]) == (importance, 4)
    assert (tmp_path / "heads.png").read_bytes().startswith(b"\x89PNG")
    if importance == "combined":
        # Norm and entropy on a scale from 0 to 1 each, half and half.
        assert ((0 <= scores) & (scores <= 1)).all()
        assert f"{scores[0, 0]:.2f}" in output


def test_small_scores_of_twelve_heads_fit_into_100_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    scores = [[0.00123 * (head + 1) for head in range(11)] + [None], [7.3e-5] * 12]
    monkeypatch.setattr(heads, "score_heads", lambda *options: (Path("runs/heads"), scores))
    heads.run(make_console(), HeadsArguments(model="teacher", importance="gradient"), None)
    output = capsys.readouterr().out
    for words in ("units of 1e-2", "0.12", "1.35", "0.01"):
        assert words in output
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= 100


@pytest.mark.slow
def test_batches_are_of_problems_with_an_equation(problems, solver_folder, tmp_path, output_of):
    rows = read_rows(problems / "test.jsonl")
    unlabelled = [{**row, "id": f"no-{row['id']}", "equation": None} for row in rows[:4]]
    write_rows(tmp_path / "test.jsonl", [*unlabelled, *rows[:3]])
    argv = ["heads", "--model", solver_folder, "--dataset", tmp_path, "--split=test", "--batch_size=4"]
    output_of(*argv, "--importance=gradient", "--output_dir", tmp_path / "heads")
    record = read_json(tmp_path / "heads" / "heads.json")
    assert record["texts"] == 3
    assert torch.tensor(record["scores"]).any()


def test_wrong_options_are_named(problems, solver_folder, error_of):
    assert "`model`" in error_of("heads", "--dataset", problems)
    argv = ["heads", "--model", solver_folder, "--dataset", problems]
    assert re.search("'dev'.* train, validation, test.*--split", error_of(*argv, "--split", "dev"))
