"""A re-ranker fitted, saved beside its model, and used by the other commands."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import torch
import yaml

from hf_mwp import MathWordProblem, MwpProcessor, MwpSolver, load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityError, PlausibilityReranker, Question, candidate_answers
from hf_mwp.solver.solving.fit_reranker import fit_reranker
from hf_mwp.solver.solving.solve_problems import solve_problems
from tests.tiny import tiny_rows


@pytest.fixture(scope="module")
def problems(solver_folder, tmp_path_factory):
    """Problems of which an untrained solver has the right value in its beam, at the second place."""
    folder = tmp_path_factory.mktemp("second_place")
    model = MwpSolver.from_pretrained(solver_folder)
    processor = MwpProcessor.from_pretrained(solver_folder)
    parts = {"train": tiny_rows(36, 1), "valid": tiny_rows(8, 2), "test": tiny_rows(9, 3)}
    for part, rows in parts.items():
        lines = []
        for row, found in zip(rows, solve_problems(model, processor, rows, num_beams=6, top_k=6), strict=True):
            problem = MathWordProblem(row["text"])
            answers = candidate_answers(Question.read(problem), found.beam.trees)
            right = answers[1]
            equation = right.best.expression.bind(problem.numbers).to_infix()
            record = {"id": row["id"], "text": row["text"], "equation": equation, "answer": str(right.value)}
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(solver_folder, problems, tmp_path_factory):
    """A solver with its re-ranker."""
    folder = tmp_path_factory.mktemp("reranked") / "model"
    shutil.copytree(solver_folder, folder)
    argv = ["rerank", "--model", str(folder), "--dataset", str(problems), "--num_beams=6"]
    assert main(argv) == 0
    return folder


def test_the_file_beside_the_model(model):
    reranker = PlausibilityReranker.from_pretrained(model)
    assert (reranker.language, reranker.num_beams) == ("zh", 6)
    assert (reranker.fitted_on["model"], reranker.fitted_on["num_problems"]) == ("model", 36)
    assert reranker.fitted_on["split"] == "train"
    measured = reranker.measured["validation"]
    # All right answers stand at the second place of the beam.
    assert measured["num_problems"] == 8 and (measured["without"], measured["in_beam"]) == (0, 1)
    assert reranker.measured["train"]["with"] > 0
    assert not (model / "run.json").exists()
    # It is better on validation problems, so it is how the folder is searched from now on.
    assert measured["with"] > 0 and DefaultSearch.from_pretrained(model) == DefaultSearch(6, True)


def test_without_a_gain_the_default_search_is_kept(solver_folder, problems, tmp_path, monkeypatch):
    equal = {"num_problems": 8, "without": 0.5, "with": 0.5, "in_beam": 0.5}
    fitted = replace(PlausibilityReranker.from_pretrained("zh"), measured={"validation": equal})
    monkeypatch.setattr("hf_mwp.solver.solving.fit_reranker.fit_reranker", lambda *args, **options: fitted)
    place = shutil.copytree(solver_folder, tmp_path / "model")
    argv = ["rerank", "--model", str(place), "--dataset", str(problems), "--overwrite"]
    # What used the re-ranker that was replaced does not use the new one.
    for before, after in {(3, False): (3, False), (8, "zh"): (8, "zh"), (8, True): (1, False)}.items():
        DefaultSearch(*before).save_pretrained(place)
        assert main(argv) == 0 and DefaultSearch.from_pretrained(place) == DefaultSearch(*after)


def test_the_models_own_folder_may_be_named(model, problems, tmp_path):
    place = shutil.copytree(model, tmp_path / "model")
    argv = ["rerank", "--model", str(place), "--dataset", str(problems), "--num_beams=6", "--overwrite"]
    assert main([*argv, "--output_dir", f"{place}/"]) == 0
    assert {path.name for path in place.iterdir()} == {path.name for path in model.iterdir()}


def test_a_fit_is_the_same_each_time_and_told_in_a_card(model, problems, tmp_path, capsys):
    argv = ["rerank", "--model", str(model), "--dataset", str(problems), "--num_beams=6"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    assert (tmp_path / "plausibility.json").read_text("utf-8") == (model / "plausibility.json").read_text("utf-8")
    shown = " ".join(capsys.readouterr().out.split())
    assert "6 beams" in shown and "log_mass" in shown
    assert json.loads((tmp_path / "metrics.json").read_text("utf-8"))["reranking"]["train"]["num_problems"] == 36
    # A card with this re-ranker says how the solver is searched with it.
    plain = shutil.copytree(model, tmp_path / "plain", ignore=shutil.ignore_patterns("plausibility*", "generation*"))
    argv = ["card", "--model", str(plain), "--reranker", str(tmp_path), "--output_dir", str(tmp_path / "card")]
    assert main(argv) == 0 and DefaultSearch.from_pretrained(tmp_path / "card") == DefaultSearch(6, True)


def test_fewer_beams_are_measured_and_ranked_if_that_was_asked_for(model, problems, tmp_path):
    argv = ["rerank", "--model", str(model), "--dataset", str(problems), "--num_beams=6", "--min_beams=3"]
    argv += ["--output_dir", str(tmp_path)]
    assert main(argv) == 0
    reranker = PlausibilityReranker.from_pretrained(tmp_path)
    assert reranker.weights == PlausibilityReranker.from_pretrained(model).weights
    assert (reranker.num_beams, reranker.min_beams) == (6, 3)
    assert list(reranker.measured) == ["train", "validation", "validation, 3 beams"]
    fewer = reranker.measured["validation, 3 beams"]
    assert fewer["num_problems"] == 8 and fewer["in_beam"] <= reranker.measured["validation"]["in_beam"]
    evaluate = ["evaluate", "--model", str(model), "--reranker", str(tmp_path), "--dataset", str(problems)]
    assert main([*evaluate, "--num_beams=3", "--output_dir", str(tmp_path / "evaluation")]) == 0
    assert main([*evaluate, "--num_beams=2", "--output_dir", str(tmp_path / "refused")]) == 1


def test_unsure_beams_are_fitted_to_beside_the_others(model, problems):
    """A quarter of the problems is solved under dropout: the same in each run, and the solver is left as it was."""
    solver = MwpSolver.from_pretrained(model).eval()
    processor = MwpProcessor.from_pretrained(model)
    rates = [layer.p for layer in solver.modules() if isinstance(layer, torch.nn.Dropout)]
    rows = list(load_mwp_dataset(problems)["train"])
    parts = {"train": rows[:12], "validation": rows[12:16]}
    fitted = [fit_reranker(solver, processor, parts, num_beams=6, mc_dropout_fraction=0.25) for _ in range(2)]
    assert fitted[0] == fitted[1]
    counts = {part: each["num_problems"] for part, each in fitted[0].measured.items()}
    assert counts == {"train, unsure": 3, "train": 9, "validation": 4}
    assert (fitted[0].fitted_on["num_problems"], fitted[0].fitted_on["mc_dropout_fraction"]) == (12, 0.25)
    assert fitted[0].weights != fit_reranker(solver, processor, parts, num_beams=6).weights
    assert [layer.p for layer in solver.modules() if isinstance(layer, torch.nn.Dropout)] == rates
    assert not any(module.training for module in solver.modules())
    with pytest.raises(ValueError, match="`mc_dropout_fraction`.* 1"):
        fit_reranker(solver, processor, parts, mc_dropout_fraction=1)
    for wrong, message in (
        ({"min_beams": 7}, "`min_beams`.* 2 .* 6.* 7"),
        ({"regularization": 0}, "`regularization`.* 0"),
    ):
        with pytest.raises(PlausibilityError, match=message):
            fit_reranker(solver, processor, parts, num_beams=6, **wrong)
    for layer in [module for module in solver.encoder.modules() if hasattr(module, "dropout")]:
        layer.dropout = torch.nn.Identity()
    with pytest.raises(PlausibilityError, match="dropout.*`mc_dropout_fraction`.* 0"):
        fit_reranker(solver, processor, parts, num_beams=6, mc_dropout_fraction=0.25)


def test_held_out_parts_scale_all_weights_alike(model, problems):
    solver = MwpSolver.from_pretrained(model)
    processor = MwpProcessor.from_pretrained(model)
    rows = list(load_mwp_dataset(problems)["train"])
    wrong = [{**row, "answer": "1234567", "equation": None} for row in rows[12:16]]
    alone = fit_reranker(solver, processor, {"train": rows[:12]}, num_beams=6).weights
    scaled = fit_reranker(solver, processor, {"train": rows[:12], "validation": wrong}, num_beams=6).weights
    # No first answer is right, so that the factor is the least that is tried.
    assert scaled == pytest.approx({name: 0.05 * weight for name, weight in alone.items()})


def test_parts_without_problems_are_not_measured(model, problems):
    solver = MwpSolver.from_pretrained(model)
    processor = MwpProcessor.from_pretrained(model)
    rows = list(load_mwp_dataset(problems)["train"])
    parts = {"train": rows[:12], "empty": [], "validation": rows[12:16]}
    measured = fit_reranker(solver, processor, parts, num_beams=6, min_beams=3).measured
    assert list(measured) == ["train", "validation", "validation, 3 beams"]
    with pytest.raises(PlausibilityError, match=r"\b0 problems"):
        fit_reranker(solver, processor, {"empty": [], **parts}, num_beams=6)


def test_problems_without_an_answer_change_no_accuracy(model, problems):
    solver = MwpSolver.from_pretrained(model)
    processor = MwpProcessor.from_pretrained(model)
    rows = list(load_mwp_dataset(problems)["train"])
    parts = {"train": rows[:12], "validation": rows[12:16]}
    unlabelled = [{"text": row["text"]} for row in rows[16:24]]
    more = {part: [*unlabelled, *each] for part, each in parts.items()} | {"unlabelled": unlabelled}
    known, found = (fit_reranker(solver, processor, each, num_beams=6) for each in (parts, more))
    assert known.measured["validation"]["num_problems"] == 4 and known.measured["validation"]["in_beam"] == 1
    assert found == known


def test_evaluate_shows_both(model, problems, tmp_path, capsys):
    argv = ["evaluate", "--model", str(model), "--dataset", str(problems), "--rerank", "--output_dir", str(tmp_path)]
    assert main(argv) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "without re-ranking" in shown and "with re-ranking" in shown
    test = json.loads((tmp_path / "metrics.json").read_text("utf-8"))["test"]
    assert test["num_beams"] == 6 and test["reranked"] is True
    path = tmp_path / "predictions.jsonl"
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    right = sum(record["answer_correct"] for record in records) / len(records)
    assert test["reports"]["all problems"]["answer_accuracy"] == pytest.approx(right)
    moved = [record for record in records if record["instead_of"]]
    for record in moved:
        assert record["instead_of"]["value"] != record["value"]
    # So it is evaluated by default.
    argv = ["evaluate", "--model", str(model), "--dataset", str(problems), "--json"]
    capsys.readouterr()
    assert main([*argv, "--output_dir", str(tmp_path / "p")]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == test["reports"]
    # Without re-ranking it is the search of as many beams.
    argv = ["evaluate", "--model", str(model), "--dataset", str(problems), "--num_beams=6", "--json"]
    capsys.readouterr()
    assert main([*argv, "--output_dir", str(tmp_path / "p")]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == test["reports_without_reranking"]


def test_solve_tells_what_was_rejected(model, tmp_path, capsys):
    reranker = PlausibilityReranker.from_pretrained(model)
    weights = dict.fromkeys(reranker.weights, 0.0) | {"rank": 99.0, "negative": 0.0}
    PlausibilityReranker("zh", weights, 6).save_pretrained(tmp_path)
    text = "小明有5个苹果，吃了2个，还有几个？"
    assert main(["solve", "--model", str(model), "--reranker", str(tmp_path), text]) == 0
    shown = capsys.readouterr().out
    assert "instead of" in shown and "plausibility" in shown
    assert main(["solve", "--model", str(model), "--reranker", str(tmp_path), "--json", text]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["instead_of"]) == {"equation", "answer", "violations"} and 0 < result["plausibility"] <= 1


@pytest.mark.parametrize("command", ["solve", "evaluate"])
def test_bad_rerankers_are_named(command, model, solver_folder, problems, tmp_path, capsys):
    more = ["1和2？"] if command == "solve" else ["--dataset", str(problems)]
    assert main([command, "--model", str(solver_folder), "--rerank", *more]) == 1
    assert re.search(r"plausibility\.json.*`hf-mwp rerank", capsys.readouterr().err)
    assert main([command, "--model", str(model), "--rerank", "--num_beams=5", *more]) == 1
    assert re.search("6 beams.* 5.*num_beams=6", capsys.readouterr().err)
    weights = PlausibilityReranker.from_pretrained(model).weights
    PlausibilityReranker("en", weights, 6).save_pretrained(tmp_path)
    assert main([command, "--model", str(model), "--reranker", str(tmp_path), *more]) == 1
    assert re.search("'en'.*'zh'", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("option", "fault"),
    [("--num_beams=1", "2.* 1"), ("--regularization=0", "0"), ("--mc_dropout_fraction=1", "1")],
)
def test_bad_options_are_named(option, fault, solver_folder, problems, tmp_path, capsys):
    argv = ["rerank", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main([*argv, option]) == 1
    assert re.search(f"`{option[2:].partition('=')[0]}`.* {fault}", capsys.readouterr().err)


def test_a_hub_id_needs_a_folder(capsys):
    assert main(["rerank", "--model", "someone/solver"]) == 1
    assert "--output_dir" in capsys.readouterr().err


def test_data_of_another_language_are_named(solver_folder, tmp_path, capsys):
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "2 and 3?", "equation": "2+3", "answer": "5", "language": "en"}\n' * 9, "utf-8")
    assert main(["rerank", "--model", str(solver_folder), "--dataset", str(path), "--output_dir", str(tmp_path)]) == 1
    assert re.search(f"Chinese.*{path} .*English", capsys.readouterr().err)


def test_as_a_stage_of_a_recipe(solver_folder, problems, tmp_path, capsys):
    stages = {
        "plausible": {"command": "rerank", "model": str(solver_folder), "dataset": str(problems), "num_beams": 6},
        "evaluate": {
            "command": "evaluate",
            "model": str(solver_folder),
            "reranker": "${plausible}",
            "dataset": str(problems),
        },
        "card": {
            "command": "card",
            "model": str(solver_folder),
            "reranker": "${plausible}",
            "evaluations": ["${evaluate}"],
        },
    }
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"recipe": "Tiny", "stages": stages, "targets": ["card"]}), encoding="utf-8")
    assert main(["run", str(path), "--output_dir", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "train 0.0 " in shown and "with re-ranking" in shown
    (folder,) = (tmp_path / "run").glob("card-*")
    assert PlausibilityReranker.from_pretrained(folder).num_beams == 6
    assert "re-ranked" in (folder / "README.md").read_text("utf-8")


def test_records_and_weights_that_are_there_are_not_replaced_unasked(model, problems, tmp_path, capsys):
    folder = tmp_path / "trained"
    shutil.copytree(model, folder)
    (folder / "run.json").write_text('{"command": "hf-mwp train"}', "utf-8")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    argv = ["rerank", "--model", str(folder), "--dataset", str(problems), "--num_beams=6", "--regularization=9"]
    for place in ([], ["--output_dir", str(folder)]):
        assert main([*argv, *place]) == 1
        assert "--overwrite" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert main([*argv, "--overwrite"]) == 0
    assert PlausibilityReranker.from_pretrained(folder) != PlausibilityReranker.from_pretrained(model)
    # A fit that fails leaves nothing.
    assert main([*argv, "--output_dir", str(tmp_path / "none"), "--split=test"]) == 1
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--reranker=en"], "'en'.*'zh'"),
        (["--reranker=nowhere"], r"nowhere .*plausibility\.json"),
    ],
)
def test_a_card_with_another_reranker_is_refused_before_it_is_written(options, fault, model, tmp_path, capsys):
    assert main(["card", "--model", str(model), "--output_dir", str(tmp_path / "card"), *options]) == 1
    assert re.search(fault, " ".join(capsys.readouterr().err.split())) and not (tmp_path / "card").exists()


def test_the_card_brings_the_reranker_along(model, tmp_path):
    assert main(["card", "--model", str(model), "--output_dir", str(tmp_path)]) == 0
    assert PlausibilityReranker.from_pretrained(tmp_path) == PlausibilityReranker.from_pretrained(model)
