"""The pipeline with `rerank`."""

import math
import shutil

import pytest
import torch
from transformers import pipeline

import hf_mwp
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker
from hf_mwp.solver.models import SolveOutput


TEXT = "小明有5个苹果，分给2人，每人分几个？"


def reranker(num_beams=4, language="zh", **weights):
    zero = {feature.name: 0.0 for feature in FEATURES}
    return PlausibilityReranker(language, zero | {"log_mass": 1.0} | weights, num_beams)


@pytest.fixture(scope="module")
def folder(solver_folder, tmp_path_factory):
    path = shutil.copytree(solver_folder, tmp_path_factory.mktemp("reranked") / "solver")
    reranker(negative=-9.0, not_whole_counted=-9.0).save_pretrained(path)
    return path


@pytest.fixture
def solver(folder, monkeypatch):
    """A pipeline whose model finds four equations for everything, and says how many beams it was asked for."""
    solver = pipeline("math-word-problem", model=str(folder), device="cpu")
    rows = [solver.processor.vocabulary.encode(Expression.from_infix(text)) for text in EQUATIONS]
    longest = max(map(len, rows))
    solver.asked = []

    def solve(input_ids, num_beams=1, num_return_sequences=1, **kwargs):
        solver.asked.append((num_beams, num_return_sequences))
        sequences = torch.tensor([row + [-100] * (longest - len(row)) for row in rows[:num_return_sequences]])
        scores = torch.tensor([0.4, 0.3, 0.2, 0.0]).log()[: len(sequences)]
        batch = len(input_ids)
        return SolveOutput(
            sequences=sequences.expand(batch, -1, -1),
            scores=scores.expand(batch, -1),
            finished=scores.isfinite().expand(batch, -1),
        )

    monkeypatch.setattr(solver.model, "solve", solve)
    return solver


EQUATIONS = ["N1-N0", "N0/N1", "N0-N1", "N0+N1"]


def test_a_plausible_answer_comes_first(solver):
    (result,) = solver(TEXT, rerank=True)
    assert (result["answer"], result["equation"], result["prefix"]) == (3.0, "5-2", ["-", "N0", "N1"])
    assert result["score"] == pytest.approx(0.2)  # the solver's own
    assert result["plausibility"] == pytest.approx(0.2 / (0.2 + 0.7 * math.exp(-9)), abs=1e-3)
    assert result["instead_of"] == {"equation": "2-5", "answer": -3.0, "violations": ["negative count"]}
    assert solver.asked == [(4, 4)]


def test_without_it_nothing_is_different(solver):
    (result,) = solver(TEXT)
    assert result["answer"] == -3.0 and not {"plausibility", "instead_of"} & result.keys()
    assert solver(TEXT, rerank=False) == [result]
    assert solver.asked == [(1, 1), (1, 1)]


def test_the_best_values(solver):
    (results,) = [solver(TEXT, rerank=True, top_k=3)]
    assert [result["answer"] for result in results] == [3.0, -3.0, 2.5]
    assert ["instead_of" in result for result in results] == [True, False, False]
    assert [result["violations"] for result in results] == [[], ["negative count"], ["2.5 人"]]
    assert sum(result["plausibility"] for result in results) == pytest.approx(1, abs=1e-3)


def test_lists_and_batches(solver):
    results = solver([TEXT, "", TEXT], rerank=True, batch_size=2, num_beams=6)
    assert [result["answer"] for result in results] == [3.0, None, 3.0]
    assert solver.asked == [(6, 6), (6, 6)]


def test_equations_without_a_value_come_back_as_before(solver, monkeypatch):
    monkeypatch.setattr(solver.processor, "decode", lambda ids: Expression.from_infix("N0/(N1-N1)"))
    (result,) = solver(TEXT, rerank=True)
    assert result["answer"] is None and "division by zero" in result["error"]


def test_one_given_by_hand_or_by_folder(solver, tmp_path):
    assert solver(TEXT, rerank=reranker(2))[0]["answer"] == -3.0
    reranker(2, not_whole_counted=9.0).save_pretrained(tmp_path)
    assert solver(TEXT, rerank=str(tmp_path))[0]["answer"] == 2.5


def test_as_an_option_of_the_pipeline(folder, tmp_path):
    solver = pipeline("math-word-problem", model=str(folder), device="cpu", rerank=True)
    assert "plausibility" in solver(TEXT)[0]
    solver.save_pretrained(tmp_path)
    assert hf_mwp.PlausibilityReranker.from_pretrained(tmp_path).num_beams == 4


def test_what_does_not_suit_is_refused(solver, tmp_path):
    with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
        solver(TEXT, rerank=True, num_beams=3)
    with pytest.raises(PlausibilityError, match="'en'.*'zh'"):
        solver(TEXT, rerank=reranker(language="en"))
    with pytest.raises(PlausibilityError, match="plausibility.json.*`hf-mwp rerank"):
        solver(TEXT, rerank=str(tmp_path))


@pytest.mark.parametrize("threshold", [{}, {"confidence_threshold": 0.1}])
def test_there_are_at_least_top_k_beams_to_rank(solver, folder, threshold):
    given = {"rerank": True, "num_beams": 2, **threshold}
    results = solver(TEXT, top_k=4, **given)
    assert solver.asked == [(4, 4)] and results == solver(TEXT, top_k=4, **given | {"num_beams": 4})
    (of_runtime,) = [load_solver(folder)(TEXT, top_k=5, **given)]
    assert of_runtime == load_solver(folder)(TEXT, top_k=5, **given | {"num_beams": 5})
    for solve in (solver, load_solver(folder)):
        with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
            solve(TEXT, top_k=3, **given)


def test_the_folder_says_how_to_search_unless_the_call_does(folder, solver, tmp_path):
    solver.default_search = DefaultSearch(num_beams=4, rerank=True)
    assert "plausibility" in solver(TEXT)[0] and solver.asked == [(4, 4)]
    for choice, asked in (({"num_beams": 1}, (1, 1)), ({"num_beams": 2}, (2, 1)), ({"rerank": False}, (1, 1))):
        solver.asked.clear()
        assert "plausibility" not in solver(TEXT, **choice)[0] and solver.asked == [asked]
    solver.save_pretrained(tmp_path)
    assert DefaultSearch.from_pretrained(tmp_path) == solver.default_search
    assert pipeline("math-word-problem", model=str(tmp_path), device="cpu").default_search == solver.default_search
    assert pipeline("math-word-problem", model=str(folder), device="cpu").default_search == DefaultSearch()
