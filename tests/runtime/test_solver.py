import json
import shutil
import subprocess
import sys
import textwrap
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


PACKAGE = Path(__file__).parents[2]
TEXTS = [
    "小明有4个苹果，又买了2个，一共有几个？",
    "每盒12个苹果，3盒一共有几个？",
    "把30个苹果平均分给6人，每人几个？剩几个？",
    "一共有几个苹果？",
    "",
    "The shop has 3 boxes of (1/2) litre.",
    "小明有5个苹果，" * 20,
    "小明有5个苹果，" * 20_000,
]


@pytest.fixture(scope="module")
def solvers(solver_folder):
    return load_solver(solver_folder), pipeline("math-word-problem", model=str(solver_folder), device="cpu")


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, list):
            assert_same(one, other)
            continue
        assert one.keys() == other.keys()
        for name in one:
            if name in ("score", "plausibility", "unknown_share"):
                assert one[name] == pytest.approx(other[name], abs=2e-4)
            elif name != "candidates" and "Unsure" not in str(one[name]):
                assert one[name] == other[name], name


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_beams": 4},
        {"num_beams": 3, "top_k": 3},
        {"num_beams": 8, "top_k": 2, "rerank": "zh"},
        {"num_beams": 4, "confidence_threshold": 0.9},
        {"max_decode_length": 1},
    ],
    ids=str,
)
def test_answers_are_those_of_the_pipeline(solvers, options):
    runtime, torch_pipeline = solvers
    assert_same(runtime(TEXTS, **options), torch_pipeline(TEXTS, **options))


def test_numbers_beyond_the_cut_are_no_candidates(solvers, monkeypatch):
    runtime, torch_pipeline = solvers
    text = "小明有5个苹果，" * 12_000
    widths = []
    search = TreeDecoder.search

    def recorded(decoder, states, number_positions, *options):
        widths.append((len(states), len(number_positions)))
        return search(decoder, states, number_positions, *options)

    monkeypatch.setattr(TreeDecoder, "search", recorded)
    # A single problem of the pipeline is searched by the runtime, too.
    assert_same(runtime(text), torch_pipeline(text))
    assert widths == [(64, 8), (64, 8)]
    assert "11992 of its 12000 numbers were cut off" in runtime(text)[0]["warning"]


NOT_FINITE = {
    "NaN in the encoder": ("encoder.encoder.layer.0.attention.output.dense.weight", float("nan")),
    "infinite norm": ("encoder.embeddings.LayerNorm.weight", float("inf")),
    "NaN in the decoder": ("decoder.constant_embedding", float("nan")),
    "infinite operator": ("decoder.operator_scorer.bias", float("inf")),
}


@pytest.mark.parametrize("damage", NOT_FINITE)
def test_scores_that_are_not_finite_are_the_reason_for_no_answer(solver_folder, tmp_path, damage):
    name, value = NOT_FINITE[damage]
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    change_weights(folder, lambda tensors: tensors[name].view(-1)[:1].fill_(value))
    runtime = load_solver(folder)
    torch_pipeline = pipeline("math-word-problem", model=str(folder), device="cpu")
    for options in ({}, {"num_beams": 3, "rerank": False}, {"num_beams": 8, "rerank": "zh"}):
        (found,) = runtime(TEXTS[0], **options)
        (alone,) = torch_pipeline(TEXTS[0], **options)
        batched = torch_pipeline(TEXTS[:3], batch_size=3, **options)
        sentences = {record["error"] for record in (found, alone, *batched)}
        (sentence,) = sentences
        assert sentence.startswith(f"The solver {folder} computed scores that are NaN or infinite, because")
        assert name in sentence and found["answer"] is None


@pytest.mark.parametrize("name", ["num_beams", "top_k", "max_decode_length"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2"])
def test_wrong_parameters_are_named(solvers, name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{value}"):
        solvers[0](TEXTS, **{name: value})


def test_one_text_gives_a_list_as_in_the_pipeline(solvers):
    runtime, torch_pipeline = solvers
    for options in ({}, {"top_k": 2}):
        found = runtime(TEXTS[0], **options)
        assert_same(found, torch_pipeline(TEXTS[0], **options))


def test_options_may_be_numbers_of_numpy(solvers):
    for solver in solvers:
        found = solver(TEXTS[0], top_k=np.int64(2), confidence_threshold=np.float64(0))
        assert_same(found, solver(TEXTS[0], top_k=2, confidence_threshold=0))


@pytest.mark.parametrize("problems", [{"text": TEXTS[0]}, [{"text": TEXTS[0]}], [None], None, b"4 5"])
def test_what_is_no_text_is_an_error_as_in_the_pipeline(solvers, problems):
    for solver in solvers:
        with pytest.raises(TypeError, match="(text|MathWordProblem).*(dict|None|bytes)"):
            solver(problems)


def test_the_search_of_the_folder_is_the_default(solver_folder, tmp_path):
    for path in solver_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    DefaultSearch(num_beams=8, rerank="zh").save_pretrained(tmp_path)
    solver = load_solver(tmp_path)
    reranker, num_beams = solver.search(None, None)
    assert isinstance(reranker, PlausibilityReranker) and num_beams == 8
    assert "plausibility" in solver(TEXTS[0])[0]
    assert "plausibility" not in solver(TEXTS[0], num_beams=1)[0]


def test_folders_that_are_no_solver_are_refused(solver_folder, encoder, tmp_path):
    assert can_load(solver_folder) and not can_load(encoder) and not can_load(tmp_path)
    with pytest.raises(UsageError, match="not a solver"):
        load_solver(encoder)
    with pytest.raises(UsageError, match=r"config\.json"):
        load_solver(tmp_path)
    for path in solver_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / EXPORT_RECORD).write_text(json.dumps({"version": 99}))
    with pytest.raises(UsageError, match="99"):
        load_solver(tmp_path)


def test_activations_of_pytorch_only_are_not_loaded(solver_folder, tmp_path):
    config = json.loads((solver_folder / "config.json").read_text())
    config["encoder_config"]["hidden_act"] = "mish"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert can_load(solver_folder) and not can_load(tmp_path)


def test_it_solves_where_neither_torch_nor_transformers_is(solver_folder):
    code = f"""
        import importlib.abc, sys

        ALLOWED = {{"numpy", "tokenizers", "hf_mwp", "huggingface_hub"}} | set(sys.stdlib_module_names)

        class Blocked(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name.partition(".")[0] not in ALLOWED and path is None:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        import site
        before = set(sys.modules)
        sys.meta_path.insert(0, Blocked())
        import importlib.util
        importlib.util.find_spec = lambda name, package=None: None  # as where torch is not installed
        from hf_mwp.runtime import load_solver
        print(load_solver({str(solver_folder)!r})({TEXTS[0]!r}, num_beams=8, rerank="zh")[0]["numbers"])
        assert not {{"torch", "transformers", "yaml"}} & set(sys.modules)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=PACKAGE)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.strip() == "['4', '2']"
