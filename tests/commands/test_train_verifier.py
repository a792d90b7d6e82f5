"""`hf-mwp train-verifier`, and its verifier in the other commands."""

import json
import shutil

import pytest

from hf_mwp import MwpProcessor, MwpSolver, load_mwp_dataset, solve_problems
from hf_mwp.commands.main import main
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.plausibility import AnswerVerifier, PlausibilityReranker
from tests.commands.test_rerank import problems  # noqa: F401


@pytest.fixture(scope="module")
def verified(solver_folder, problems, tmp_path_factory):  # noqa: F811
    """A solver's folder with a verifier and a re-ranker."""
    folder = tmp_path_factory.mktemp("verified")
    solver = shutil.copytree(solver_folder, folder / "model")
    options = ["--model", str(solver), "--dataset", str(problems), "--num_beams=6"]
    verifier = folder / "verifier"
    assert main(["train-verifier", *options, "--max_steps=4", "--output_dir", str(verifier)]) == 0
    assert main(["rerank", *options, "--verifier", str(verifier)]) == 0
    return solver


def test_record_names_the_problems(verified):
    folder = verified.parent / "verifier"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["problems"] == 36
    assert (folder / "run.json").is_file()
    assert not (folder / "beams").exists()


def test_runtime_and_export_give_the_answers_of_pytorch(verified, problems, tmp_path):  # noqa: F811
    assert PlausibilityReranker.from_pretrained(verified).verifier_weight
    model = MwpSolver.from_pretrained(verified).eval()
    processor = MwpProcessor.from_pretrained(verified)
    reranker = PlausibilityReranker.from_pretrained(verified)
    texts = [row["text"] for row in load_mwp_dataset(problems)["test"]]
    predictions = solve_problems(model, processor, texts, reranker=reranker)
    exported = tmp_path / "exported"
    assert main(["export", "--model", str(verified), "--output_dir", str(exported)]) == 0
    assert (exported / AnswerVerifier.file_name).is_file()
    for folder in (verified, exported):
        results = load_solver(folder)(texts, rerank=True)
        for result, prediction in zip(results, predictions, strict=True):
            assert result["plausibility"] == pytest.approx(prediction.ranked[0].plausibility, abs=2e-2)
            assert result["answer"] == pytest.approx(float(prediction.ranked[0].value))


def test_folder_without_a_verifier_is_an_error(solver_folder, problems, tmp_path, capsys):  # noqa: F811
    options = ["--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path / "run")]
    assert main(["rerank", *options, "--verifier", str(tmp_path)]) == 1
    assert "train-verifier" in capsys.readouterr().err
