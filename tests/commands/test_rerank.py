"""A re-ranker fitted, saved beside its model, and used by the other commands."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import torch

from hf_mwp import MathWordProblem, MwpProcessor, MwpSolver, load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityError, PlausibilityReranker, Question, candidate_answers
from hf_mwp.solver.solving.fit_reranker import fit_reranker
from hf_mwp.solver.solving.solve_problems import solve_problems
from tests.commands.folders import contents, read_json, read_rows, write_rows
from tests.slow_parameters import slow_after
from tests.tiny import tiny_rows


@pytest.fixture(scope="module")
def problems(solver_folder, tmp_path_factory):
    """Problems of which an untrained solver has the right value in its beam, at the second place."""
    folder = tmp_path_factory.mktemp("second_place")
    model = MwpSolver.from_pretrained(solver_folder)
    processor = MwpProcessor.from_pretrained(solver_folder)
    splits = {"train": tiny_rows(36, 1), "valid": tiny_rows(8, 2), "test": tiny_rows(9, 3)}
    for split, rows in splits.items():
        records = []
        predictions = solve_problems(model, processor, rows, num_beams=6, top_k=6)
        for row, prediction in zip(rows, predictions, strict=True):
            problem = MathWordProblem(row["text"])
            second = candidate_answers(Question.read(problem), prediction.beam.trees)[1]
            equation = second.best.expression.bind(problem.numbers).to_infix()
            records.append({"id": row["id"], "text": row["text"], "equation": equation, "answer": str(second.value)})
        write_rows(folder / f"{split}.jsonl", records)
    return folder


@pytest.fixture(scope="module")
def model(solver_folder, problems, tmp_path_factory):
    """A solver with its re-ranker."""
    folder = shutil.copytree(solver_folder, tmp_path_factory.mktemp("reranked") / "model")
    assert main(["rerank", "--model", str(folder), "--dataset", str(problems), "--num_beams=6"]) == 0
    return folder


@pytest.fixture(scope="module")
def loaded(model, problems):
    """The solver, its processor, and training problems."""
    solver = MwpSolver.from_pretrained(model).eval()
    rows = list(load_mwp_dataset(problems)["train"])
    return solver, MwpProcessor.from_pretrained(model), rows


@pytest.fixture
def fits(monkeypatch):
    """Options of each fit, which returns a re-ranker that changes no accuracy."""
    fits = []
    report = {"num_problems": 8, "without": 0.5, "with": 0.5, "in_beam": 0.5}
    reranker = replace(PlausibilityReranker.from_pretrained("zh"), measured={"validation": report})

    def fit_reranker(model, processor, splits, **options):
        fits.append({split: len(rows) for split, rows in splits.items()} | options)
        return reranker

    monkeypatch.setattr("hf_mwp.solver.solving.fit_reranker.fit_reranker", fit_reranker)
    return fits


def test_reranker_is_saved_beside_the_model(model):
    reranker = PlausibilityReranker.from_pretrained(model)
    assert (reranker.language, reranker.num_beams) == ("zh", 6)
    fitted_on = reranker.fitted_on
    assert (fitted_on["model"], fitted_on["num_problems"], fitted_on["split"]) == ("model", 36, "train")
    # All right answers are at the second place of the beam.
    report = reranker.measured["validation"]
    assert (report["num_problems"], report["without"], report["in_beam"]) == (8, 0, 1)
    assert reranker.measured["train"]["with"] > 0
    assert not (model / "run.json").exists()
    # It improves the accuracy, so it becomes the default search.
    assert report["with"] > 0
    assert DefaultSearch.from_pretrained(model) == DefaultSearch(6, True)


@pytest.mark.parametrize(
    ("before", "after"),
    # A search with the re-ranker that was replaced does not use the new one.
    slow_after(1, [((8, True), (1, False)), ((3, False), (3, False)), ((8, "zh"), (8, "zh"))]),
)
def test_without_a_gain_the_default_search_does_not_change(
    before, after, solver_folder, problems, fits, tmp_path, output_of
):
    folder = shutil.copytree(solver_folder, tmp_path / "model")
    DefaultSearch(*before).save_pretrained(folder)
    output_of("rerank", "--model", folder, "--dataset", problems)
    assert DefaultSearch.from_pretrained(folder) == DefaultSearch(*after)


def test_options_are_passed_on(solver_folder, problems, fits, tmp_path, output_of):
    argv = ["rerank", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path, "--num_samples=12"]
    options = {"num_beams": 6, "min_beams": 3, "regularization": 2.0, "mc_dropout_fraction": 0.5, "batch_size": 4}
    output = output_of(*argv, *[f"--{name}={value}" for name, value in options.items()])
    assert "beams" in output
    assert "Heaviest weights" in output
    (fit,) = fits
    assert fit.items() >= ({"train": 12, "validation": 8} | options).items()
    assert read_json(tmp_path / "metrics.json")["reranking"]["validation"]["num_problems"] == 8


def test_models_own_folder_may_be_named(model, problems, fits, tmp_path, output_of):
    folder = shutil.copytree(model, tmp_path / "model")
    argv = ["rerank", "--model", folder, "--dataset", problems, "--overwrite"]
    output_of(*argv, "--output_dir", f"{folder}/")
    assert contents(folder).keys() == contents(model).keys()


@pytest.mark.slow
def test_fit_is_the_same_each_time(model, problems, tmp_path, output_of):
    output_of("rerank", "--model", model, "--dataset", problems, "--num_beams=6", "--output_dir", tmp_path)
    assert (tmp_path / "plausibility.json").read_text("utf-8") == (model / "plausibility.json").read_text("utf-8")


def test_card_has_the_reranker_and_its_search(model, tmp_path, output_of):
    output_of("card", "--model", model, "--output_dir", tmp_path / "own")
    assert PlausibilityReranker.from_pretrained(tmp_path / "own") == PlausibilityReranker.from_pretrained(model)
    ignored = shutil.ignore_patterns("plausibility*", "generation*")
    plain = shutil.copytree(model, tmp_path / "plain", ignore=ignored)
    output_of("card", "--model", plain, "--reranker", model, "--output_dir", tmp_path / "card")
    assert DefaultSearch.from_pretrained(tmp_path / "card") == DefaultSearch(6, True)


@pytest.mark.parametrize(
    ("option", "message"),
    [("--reranker=en", "'en'.*'zh'"), ("--reranker=nowhere", r"nowhere .*plausibility\.json")],
)
def test_card_with_another_reranker_is_refused_before_it_is_written(option, message, model, tmp_path, error_of):
    assert re.search(message, error_of("card", "--model", model, "--output_dir", tmp_path / "card", option))
    assert not (tmp_path / "card").exists()


def dropout_rates(model):
    return [layer.p for layer in model.modules() if isinstance(layer, torch.nn.Dropout)]


@pytest.mark.slow
def test_fit_to_beams_under_dropout_is_reproducible_and_leaves_the_solver_unchanged(loaded):
    solver, processor, rows = loaded
    rates = dropout_rates(solver)
    splits = {"train": rows[:12], "validation": rows[12:16]}
    fitted = fit_reranker(solver, processor, splits, num_beams=6, mc_dropout_fraction=0.25)
    assert fitted == fit_reranker(solver, processor, splits, num_beams=6, mc_dropout_fraction=0.25)
    num_problems = {split: report["num_problems"] for split, report in fitted.measured.items()}
    assert num_problems == {"train, unsure": 3, "train": 9, "validation": 4}
    assert (fitted.fitted_on["num_problems"], fitted.fitted_on["mc_dropout_fraction"]) == (12, 0.25)
    assert fitted.weights != fit_reranker(solver, processor, splits, num_beams=6).weights
    assert dropout_rates(solver) == rates
    assert not any(module.training for module in solver.modules())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mc_dropout_fraction": 1}, "`mc_dropout_fraction`.* 1"),
        ({"min_beams": 7}, "`min_beams`.* 2 .* 6.* 7"),
        ({"regularization": 0}, "`regularization`.* 0"),
    ],
)
def test_wrong_options_of_a_fit_are_named(loaded, options, message):
    solver, processor, rows = loaded
    with pytest.raises((ValueError, PlausibilityError), match=message):
        fit_reranker(solver, processor, {"train": rows[:12]}, num_beams=6, **options)


def test_solver_without_dropout_layers_cannot_be_fitted_under_dropout(model, loaded):
    solver = MwpSolver.from_pretrained(model)
    for module in solver.encoder.modules():
        if hasattr(module, "dropout"):
            module.dropout = torch.nn.Identity()
    _, processor, rows = loaded
    with pytest.raises(PlausibilityError, match="dropout.*`mc_dropout_fraction`.* 0"):
        fit_reranker(solver, processor, {"train": rows[:12]}, num_beams=6, mc_dropout_fraction=0.25)


@pytest.mark.slow
def test_held_out_problems_scale_all_weights_alike(loaded):
    solver, processor, rows = loaded
    wrong = [{**row, "answer": "1234567", "equation": None} for row in rows[12:16]]
    weights = fit_reranker(solver, processor, {"train": rows[:12]}, num_beams=6).weights
    scaled = fit_reranker(solver, processor, {"train": rows[:12], "validation": wrong}, num_beams=6).weights
    # No first answer is right, so the smallest factor is chosen.
    assert scaled == pytest.approx({name: 0.05 * weight for name, weight in weights.items()})


def test_splits_without_problems_are_not_measured(loaded):
    solver, processor, rows = loaded
    splits = {"train": rows[:12], "empty": [], "validation": rows[12:16]}
    measured = fit_reranker(solver, processor, splits, num_beams=6, min_beams=3).measured
    assert list(measured) == ["train", "validation", "validation, 3 beams"]
    fewer = measured["validation, 3 beams"]
    assert fewer["num_problems"] == 4
    assert fewer["in_beam"] <= measured["validation"]["in_beam"]
    with pytest.raises(PlausibilityError, match=r"\b0 problems"):
        fit_reranker(solver, processor, {"empty": [], **splits}, num_beams=6)


@pytest.mark.slow
def test_problems_without_an_answer_change_nothing(loaded):
    solver, processor, rows = loaded
    splits = {"train": rows[:12], "validation": rows[12:16]}
    unlabelled = [{"text": row["text"]} for row in rows[16:24]]
    more_splits = {split: [*unlabelled, *labelled] for split, labelled in splits.items()} | {"unlabelled": unlabelled}
    fitted = fit_reranker(solver, processor, splits, num_beams=6)
    assert fitted.measured["validation"]["num_problems"] == 4
    assert fit_reranker(solver, processor, more_splits, num_beams=6) == fitted


def test_evaluation_reports_with_and_without_reranking(model, problems, tmp_path, output_of):
    argv = ["evaluate", "--model", model, "--dataset", problems, "--output_dir"]
    output = output_of(*argv, tmp_path / "reranked", "--rerank")
    assert "without re-ranking" in output
    assert "with re-ranking" in output
    test = read_json(tmp_path / "reranked" / "metrics.json")["test"]
    assert test["num_beams"] == 6
    assert test["reranked"] is True
    records = read_rows(tmp_path / "reranked" / "predictions.jsonl")
    accuracy = sum(record["answer_correct"] for record in records) / len(records)
    assert test["reports"]["all problems"]["answer_accuracy"] == pytest.approx(accuracy)
    for record in records:
        if record["instead_of"]:
            assert record["instead_of"]["value"] != record["value"]
    # This is the default search; with a number of beams, it is a search without re-ranking.
    report = json.loads(output_of(*argv, tmp_path / "default", "--json"))
    assert report["reports"] == test["reports"]
    report = json.loads(output_of(*argv, tmp_path / "beams", "--num_beams=6", "--json"))
    assert report["reports"] == test["reports_without_reranking"]


def test_solve_shows_the_rejected_answer(model, tmp_path, output_of):
    names = PlausibilityReranker.from_pretrained(model).weights
    weights = dict.fromkeys(names, 0.0) | {"rank": 99.0}
    PlausibilityReranker("zh", weights, 6).save_pretrained(tmp_path)
    argv = ["solve", "--model", model, "--reranker", tmp_path, "小明有5个苹果，吃了2个，还有几个？"]
    output = output_of(*argv)
    assert "instead of" in output
    assert "plausibility" in output
    answer = json.loads(output_of(*argv, "--json"))
    assert set(answer["instead_of"]) == {"equation", "answer", "violations"}
    assert 0 < answer["plausibility"] <= 1


@pytest.mark.parametrize("command", slow_after(1, ["solve", "evaluate"]))
def test_rerankers_that_do_not_fit_are_named(command, model, solver_folder, problems, tmp_path, error_of):
    data = ["1和2？"] if command == "solve" else ["--dataset", problems]
    error = error_of(command, "--model", solver_folder, "--rerank", *data)
    assert re.search(r"plausibility\.json.*`hf-mwp rerank", error)
    error = error_of(command, "--model", model, "--rerank", "--num_beams=5", *data)
    assert re.search("6 beams.* 5.*num_beams=6", error)
    weights = PlausibilityReranker.from_pretrained(model).weights
    PlausibilityReranker("en", weights, 6).save_pretrained(tmp_path)
    error = error_of(command, "--model", model, "--reranker", tmp_path, *data)
    assert re.search("'en'.*'zh'", error)


def test_wrong_number_of_beams_is_named(solver_folder, problems, tmp_path, error_of):
    argv = ["rerank", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path, "--num_beams=1"]
    assert re.search("`num_beams`.* 2.* 1", error_of(*argv))


def test_model_of_the_hub_needs_an_output_folder(error_of):
    assert "--output_dir" in error_of("rerank", "--model", "someone/solver")


def test_problems_of_another_language_are_refused(solver_folder, tmp_path, error_of):
    row = {"text": "2 and 3?", "equation": "2+3", "answer": "5", "language": "en"}
    path = write_rows(tmp_path / "train.jsonl", [row] * 9)
    error = error_of("rerank", "--model", solver_folder, "--dataset", path, "--output_dir", tmp_path)
    assert re.search(f"Chinese.*{path} .*English", error)


def test_reranker_is_replaced_only_on_demand(model, problems, fits, tmp_path, output_of, error_of):
    folder = shutil.copytree(model, tmp_path / "model")
    argv = ["rerank", "--model", folder, "--dataset", problems]
    assert "--overwrite" in error_of(*argv)
    assert contents(folder) == contents(model)
    output_of(*argv, "--overwrite")
    assert PlausibilityReranker.from_pretrained(folder) != PlausibilityReranker.from_pretrained(model)
