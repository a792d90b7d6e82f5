import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import pipeline

import hf_mwp  # noqa: F401 (registers the pipeline)
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.solver import EXPORT_RECORD, can_load
from hf_mwp.runtime.tree_search import TreeDecoder
from hf_mwp.utils.usage_error import UsageError
from tests.damage import change_weights
from tests.slow_parameters import slow_after


PACKAGE = Path(__file__).parents[2]
TEXTS = [
    "小明有4个苹果，又买了2个，一共有几个？",
    "每盒12个苹果，3盒一共有几个？",
    "把30个苹果平均分给6人，每人几个？剩几个？",
    "一共有几个苹果？",
    "",
    "The shop has 3 boxes of (1/2) litre.",
    "小明有5个苹果，" * 20,
    "小明有5个苹果，" * 2_000,
]


FLOATS = ("score", "plausibility", "unknown_share")


@pytest.fixture(scope="module")
def runtime(solver_folder):
    return load_solver(solver_folder)


@pytest.fixture(scope="module")
def torch_pipeline(solver_folder):
    return pipeline("math-word-problem", model=str(solver_folder), device="cpu")


@pytest.fixture
def linked_folder(solver_folder, tmp_path):
    """A folder with the files of the solver, to which others can be added."""
    for path in solver_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def assert_same(results, expected):
    assert len(results) == len(expected)
    for record, expected_record in zip(results, expected, strict=True):
        if isinstance(record, list):
            assert_same(record, expected_record)
            continue
        assert record.keys() == expected_record.keys()
        for name, value in record.items():
            if name in FLOATS:
                assert value == pytest.approx(expected_record[name], abs=2e-4)
            elif name != "candidates" and "Unsure" not in str(value):
                assert value == expected_record[name], name


@pytest.mark.parametrize(
    "options",
    slow_after(
        2,
        [
            {},
            {"num_beams": 8, "top_k": 2, "rerank": "zh"},
            {"num_beams": 3, "top_k": 3},
            {"num_beams": 4, "confidence_threshold": 0.9},
            {"num_beams": 8, "top_k": 2, "score_margin": 1.5},
            {"max_decode_length": 1},
        ],
    ),
    ids=str,
)
def test_answers_equal_those_of_the_pipeline(runtime, torch_pipeline, options):
    assert_same(runtime(TEXTS, **options), torch_pipeline(TEXTS, **options))


@pytest.mark.parametrize("options", [{}, {"top_k": 2}])
def test_text_alone_is_answered_as_by_the_pipeline(runtime, torch_pipeline, options):
    assert_same(runtime(TEXTS[0], **options), torch_pipeline(TEXTS[0], **options))


def test_numbers_beyond_the_cut_are_no_candidates(runtime, torch_pipeline, monkeypatch):
    text = "小明有5个苹果，" * 2_000
    sizes = []
    search = TreeDecoder.search

    def recorded_search(decoder, states, number_positions, *options):
        sizes.append((len(states), len(number_positions)))
        return search(decoder, states, number_positions, *options)

    monkeypatch.setattr(TreeDecoder, "search", recorded_search)
    # A single problem of the pipeline is searched by the runtime, too.
    results = runtime(text)
    assert_same(results, torch_pipeline(text))
    assert sizes == [(64, 8), (64, 8)]
    assert "1992 of its 2000 numbers were cut off" in results[0]["warning"]


@pytest.mark.parametrize(
    ("name", "value"),
    slow_after(
        2,
        [
            ("encoder.encoder.layer.0.attention.output.dense.weight", float("nan")),
            ("decoder.operator_scorer.bias", float("inf")),
            ("encoder.embeddings.LayerNorm.weight", float("inf")),
            ("decoder.constant_embedding", float("nan")),
        ],
    ),
)
def test_scores_that_are_not_finite_are_the_reason_for_no_answer(solver_folder, tmp_path, name, value):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    change_weights(folder, lambda tensors: tensors[name].view(-1)[:1].fill_(value))
    runtime = load_solver(folder)
    torch_pipeline = pipeline("math-word-problem", model=str(folder), device="cpu")
    for options in ({}, {"num_beams": 8, "rerank": "zh"}):
        results = runtime(TEXTS[0], **options) + torch_pipeline(TEXTS[0], **options)
        results += torch_pipeline(TEXTS[:3], batch_size=3, **options)
        (error,) = {record["error"] for record in results}
        assert error.startswith(f"The solver {folder} computed scores that are NaN or infinite")
        assert name in error
        assert results[0]["answer"] is None


@pytest.mark.parametrize("name", ["num_beams", "top_k", "max_decode_length"])
@pytest.mark.parametrize("value", [0, 1.5, "2"])
def test_invalid_option_is_named(runtime, name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{value}"):
        runtime(TEXTS, **{name: value})


@pytest.mark.parametrize("solver", ["runtime", "torch_pipeline"])
@pytest.mark.parametrize("score_margin", [0, -1.0, math.nan, "2", True])
def test_invalid_margin_is_named(request, solver, score_margin):
    with pytest.raises(ValueError, match=f"`score_margin` must be a number above 0, not {score_margin!r}"):
        request.getfixturevalue(solver)(TEXTS[0], score_margin=score_margin)


@pytest.mark.parametrize("solver", ["runtime", "torch_pipeline"])
def test_options_may_be_numbers_of_numpy(request, solver):
    solver = request.getfixturevalue(solver)
    results = solver(TEXTS[0], top_k=np.int64(2), confidence_threshold=np.float64(0))
    assert_same(results, solver(TEXTS[0], top_k=2, confidence_threshold=0))


@pytest.mark.parametrize("solver", ["runtime", "torch_pipeline"])
@pytest.mark.parametrize("problems", [{"text": TEXTS[0]}, [{"text": TEXTS[0]}], [None], None, b"4 5"])
def test_problem_that_is_no_text_is_refused(request, solver, problems):
    with pytest.raises(TypeError, match="(text|MathWordProblem).*(dict|None|bytes)"):
        request.getfixturevalue(solver)(problems)


def test_default_search_is_that_of_the_folder(linked_folder):
    DefaultSearch(num_beams=8, rerank="zh", score_margin=5).save_pretrained(linked_folder)
    solver = load_solver(linked_folder)
    reranker, num_beams, score_margin = solver.search()
    assert isinstance(reranker, PlausibilityReranker)
    assert num_beams == 8
    assert score_margin == 5
    assert "plausibility" in solver(TEXTS[0])[0]
    assert "plausibility" not in solver(TEXTS[0], num_beams=1)[0]


def test_folder_without_a_solver_is_refused(solver_folder, encoder, tmp_path):
    assert can_load(solver_folder)
    for folder, message in ((encoder, "not a solver"), (tmp_path, r"config\.json")):
        assert not can_load(folder)
        with pytest.raises(UsageError, match=message):
            load_solver(folder)


def test_export_of_a_newer_version_is_refused(linked_folder):
    (linked_folder / EXPORT_RECORD).write_text('{"version": 99}')
    with pytest.raises(UsageError, match="99"):
        load_solver(linked_folder)


def test_activation_of_pytorch_only_is_not_loaded(solver_folder, tmp_path):
    config = json.loads((solver_folder / "config.json").read_text())
    config["encoder_config"]["hidden_act"] = "mish"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert not can_load(tmp_path)


WITHOUT_TORCH = """
import importlib.abc, sys

ALLOWED = {"numpy", "tokenizers", "hf_mwp", "huggingface_hub"} | set(sys.stdlib_module_names)

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in ALLOWED and path is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import site
sys.meta_path.insert(0, Blocked())
import importlib.util
importlib.util.find_spec = lambda name, package=None: None  # as where torch is not installed
from hf_mwp.runtime import load_solver
print(load_solver(sys.argv[1])(sys.argv[2], num_beams=8, rerank="zh")[0]["numbers"])
assert not {"torch", "transformers", "yaml"} & set(sys.modules)
"""


def test_solver_needs_neither_torch_nor_transformers(solver_folder):
    command = [sys.executable, "-c", WITHOUT_TORCH, str(solver_folder), TEXTS[0]]
    result = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.strip() == "['4', '2']"
