"""The pipeline with `rerank`."""

import math
import shutil

import pytest
from transformers import pipeline

from hf_mwp.runtime import load_solver
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker


TEXT = "小明有5个苹果，分给2人，每人分几个？"


def build_reranker(num_beams=4, language="zh", **weights):
    weights = {feature.name: 0.0 for feature in FEATURES} | {"log_mass": 1.0} | weights
    return PlausibilityReranker(language, weights, num_beams)


@pytest.fixture(scope="module")
def folder(solver_folder, tmp_path_factory):
    path = shutil.copytree(solver_folder, tmp_path_factory.mktemp("reranked") / "solver")
    build_reranker(negative=-9.0, not_whole_counted=-9.0).save_pretrained(path)
    return path


@pytest.fixture
def solver(folder):
    return pipeline("math-word-problem", model=str(folder), device="cpu")


@pytest.fixture
def search(solver, fix_search):
    """Finds four equations, of which the last is unfinished."""
    scores = [math.log(share) for share in (0.4, 0.3, 0.2)]
    expressions = ("N1-N0", "N0/N1", "N0-N1", "N0+N1")
    return fix_search(*expressions, scores=[*scores, -math.inf], finished=[True, True, True, False])


def test_plausible_answer_comes_first(solver, search):
    (result,) = solver(TEXT, rerank=True)
    assert (result["answer"], result["equation"], result["prefix"]) == (3.0, "5-2", ["-", "N0", "N1"])
    assert result["score"] == pytest.approx(0.2)  # the solver's own
    assert result["plausibility"] == pytest.approx(0.2 / (0.2 + 0.7 * math.exp(-9)), abs=1e-3)
    assert result["instead_of"] == {"equation": "2-5", "answer": -3.0, "violations": ["negative count"]}
    assert search.calls == [(4, 4)]


def test_without_reranking_the_results_are_the_usual_ones(solver, search):
    (result,) = solver(TEXT)
    assert result["answer"] == -3.0
    assert not {"plausibility", "instead_of"} & result.keys()
    assert solver(TEXT, rerank=False) == [result]
    assert search.calls == [(1, 1), (1, 1)]


def test_several_values_are_ranked(solver, search):
    results = solver(TEXT, rerank=True, top_k=3)
    assert [result["answer"] for result in results] == [3.0, -3.0, 2.5]
    assert [result["violations"] for result in results] == [[], ["negative count"], ["2.5 人"]]
    assert ["instead_of" in result for result in results] == [True, False, False]
    assert sum(result["plausibility"] for result in results) == pytest.approx(1, abs=1e-3)


def test_batches_are_reranked(solver, search):
    results = solver([TEXT, "", TEXT, TEXT], rerank=True, batch_size=2, num_beams=6)
    assert [result["answer"] for result in results] == [3.0, None, 3.0, 3.0]
    assert search.calls == [(6, 6), (6, 6)]


def test_equations_without_a_value_keep_their_error(solver, search, monkeypatch):
    monkeypatch.setattr(solver.processor, "decode", lambda ids: Expression.from_infix("N0/(N1-N1)"))
    (result,) = solver(TEXT, rerank=True)
    assert result["answer"] is None
    assert "division by zero" in result["error"]


def test_reranker_is_passed_or_loaded_from_a_folder(solver, search, tmp_path):
    assert solver(TEXT, rerank=build_reranker(2))[0]["answer"] == -3.0
    build_reranker(2, not_whole_counted=9.0).save_pretrained(tmp_path)
    assert solver(TEXT, rerank=str(tmp_path))[0]["answer"] == 2.5


def test_reranker_of_the_pipeline_is_saved(folder, tmp_path):
    solver = pipeline("math-word-problem", model=str(folder), device="cpu", rerank=True)
    assert "plausibility" in solver(TEXT)[0]
    solver.save_pretrained(tmp_path)
    assert PlausibilityReranker.from_pretrained(tmp_path).num_beams == 4


def test_unsuitable_rerankers_are_refused(solver, search, tmp_path):
    with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
        solver(TEXT, rerank=True, num_beams=3)
    with pytest.raises(PlausibilityError, match="'en'.*'zh'"):
        solver(TEXT, rerank=build_reranker(language="en"))
    with pytest.raises(PlausibilityError, match="plausibility.json.*`hf-mwp rerank"):
        solver(TEXT, rerank=str(tmp_path))


@pytest.mark.parametrize("threshold", [{}, {"confidence_threshold": 0.1}])
def test_there_are_at_least_top_k_beams_to_rank(solver, search, folder, threshold):
    results = solver(TEXT, top_k=4, rerank=True, num_beams=2, **threshold)
    assert search.calls == [(4, 4)]
    assert results == solver(TEXT, top_k=4, rerank=True, num_beams=4, **threshold)
    runtime = load_solver(folder)
    results = runtime(TEXT, top_k=5, rerank=True, num_beams=2, **threshold)
    assert results == runtime(TEXT, top_k=5, rerank=True, num_beams=5, **threshold)
    for solve in (solver, runtime):
        with pytest.raises(PlausibilityError, match="4 beams.* 3.*num_beams=4"):
            solve(TEXT, top_k=3, rerank=True, num_beams=2, **threshold)


def test_default_search_of_the_folder_is_replaced_by_that_of_the_call(solver, search, folder, tmp_path):
    assert solver.default_search == DefaultSearch()
    solver.default_search = DefaultSearch(num_beams=4, rerank=True)
    assert "plausibility" in solver(TEXT)[0]
    for options in ({"num_beams": 1}, {"num_beams": 2}, {"rerank": False}):
        assert "plausibility" not in solver(TEXT, **options)[0]
    assert search.calls == [(4, 4), (1, 1), (2, 1), (1, 1)]
    solver.save_pretrained(tmp_path)
    assert DefaultSearch.from_pretrained(tmp_path) == solver.default_search
    assert pipeline("math-word-problem", model=str(tmp_path), device="cpu").default_search == solver.default_search
