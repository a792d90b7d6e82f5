import math
import re
import shutil
from fractions import Fraction

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import AutoConfig, AutoModel, BertModel, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import hf_mwp  # noqa: F401 (registers the task)
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.models import SolveOutput
from hf_mwp.solver.models.mwp_solver import SolverFolderError
from hf_mwp.solver.pipelines import MathWordProblemPipeline
from tests.damage import cut, drop_weights
from tests.tiny import tiny_bert_config, tiny_processor, tiny_rows, tiny_solver


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


@pytest.fixture(scope="module")
def processor():
    return tiny_processor(max_length=64)


@pytest.fixture(scope="module")
def folder(processor, tmp_path_factory):
    path = tmp_path_factory.mktemp("solver")
    tiny_solver(processor).save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def solver(folder):
    return pipeline("math-word-problem", model=str(folder), device="cpu")


def always(solver, monkeypatch, *expressions, scores=None, finished=None):
    """Lets the model answer every problem with the same expressions."""
    rows = [solver.processor.vocabulary.encode(Expression.from_infix(text)) for text in expressions]
    longest = max(map(len, rows))

    def solve(input_ids, num_return_sequences=1, **kwargs):
        shown = rows[:num_return_sequences]
        sequences = torch.tensor([row + [-100] * (longest - len(row)) for row in shown])
        batch = len(input_ids)
        return SolveOutput(
            sequences=sequences.expand(batch, -1, -1),
            scores=torch.tensor(scores or [-0.5] * len(rows))[: len(shown)].expand(batch, -1),
            finished=torch.tensor(finished or [True] * len(rows))[: len(shown)].expand(batch, -1),
        )

    monkeypatch.setattr(solver.model, "solve", solve)


def test_output(solver, monkeypatch):
    always(solver, monkeypatch, "N0+N1")
    assert solver(TEXT) == [
        {
            "answer": 6.0,
            "value": "6",
            "equation": "4+2",
            "prefix": ["+", "N0", "N1"],
            "numbers": ["4", "2"],
            "score": pytest.approx(0.60653, abs=1e-5),
            "unknown_share": 0.0,
        }
    ]


def test_value_is_exact(solver, monkeypatch):
    always(solver, monkeypatch, "N1/N0")
    (result,) = solver("把7个苹果平均分给4人")
    assert result["equation"] == "4/7"
    assert Fraction(result["value"]) == Fraction(4, 7)
    assert result["answer"] == float(Fraction(4, 7))


def test_a_number_of_the_text_is_an_answer(solver, monkeypatch):
    always(solver, monkeypatch, "N0")
    (result,) = solver("小明有4个苹果，又买了2盒，小明有几个苹果？")
    assert (result["answer"], result["equation"], result["prefix"]) == (4.0, "4", ["N0"])


def test_all_kinds_of_input_agree(solver):
    texts = [row["text"] for row in tiny_rows(7)]
    expected = [solver(text)[0] for text in texts]

    def same(results):
        for result, single in zip(results, expected, strict=True):
            assert result.pop("score") == pytest.approx(single["score"], rel=1e-4)
            assert result == {name: value for name, value in single.items() if name != "score"}

    same(solver(texts))
    same(solver(texts, batch_size=3))
    same(solver((text for text in texts), batch_size=2))
    rows = Dataset.from_dict({"text": texts})
    same(solver(rows["text"], batch_size=4))
    same(solver(rows.to_iterable_dataset()["text"], batch_size=4))
    same(solver(map(str, texts), batch_size=4))
    same(solver(tuple(texts)))
    same(solver(rows.to_pandas()["text"], batch_size=4))
    same(solver(np.array(texts)))
    same(solver(KeyDataset(rows, "text"), batch_size=2))
    same(solver(Texts(texts), batch_size=2))
    same([solver(MathWordProblem(text=text))[0] for text in texts])
    same(solver(texts, batch_size=2, num_workers=1))
    assert solver([]) == solver(rows.select([])["text"]) == []


class Texts(torch.utils.data.Dataset):
    """A dataset of PyTorch that has a length and no last index."""

    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index % len(self.texts)]


def test_beams_and_top_k(solver):
    results = solver(TEXT, top_k=3)
    assert len(results) == 3
    assert [result["score"] for result in results] == sorted((r["score"] for r in results), reverse=True)
    assert len({tuple(result["prefix"]) for result in results}) == 3
    assert solver([TEXT, TEXT], top_k=2)[1][0]["prefix"] == solver(TEXT, num_beams=2)[0]["prefix"]
    assert len(solver([TEXT, TEXT], top_k=2)[0]) == 2


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_text(solver, text):
    (result,) = solver(text)
    assert (result["answer"], result["equation"], result["score"]) == (None, None, 0.0)
    assert "empty" in result["error"]


def test_text_without_numbers(solver):
    (result,) = solver("一共有几个苹果？")
    assert result["answer"] is None
    assert "number" in result["error"]


def test_a_batch_goes_on_past_what_cannot_be_solved(solver):
    first, empty, last = solver([TEXT, "", TEXT], batch_size=3)
    assert first == last and first["numbers"] == ["4", "2"]
    assert "error" in empty


def test_half_a_surrogate_pair_is_told_and_the_others_are_answered(solver):
    first, broken, last = solver([TEXT, "4个\ud800和2个", TEXT], batch_size=3)
    assert first == last and first["numbers"] == ["4", "2"]
    assert "U+D800" in broken["error"] and "position 2" in broken["error"]


@pytest.mark.parametrize("number", ["1e999", "7" * 400])
def test_a_number_that_is_too_large_is_told(solver, number):
    (result,) = solver(f"有{number}个苹果和2个梨")
    assert result["answer"] is None
    assert number[:20] in result["error"]


def test_bare_fractions_and_signs_reach_the_answer(solver, monkeypatch):
    always(solver, monkeypatch, "N0-N1")
    (result,) = solver("最高气温是1/2℃，最低气温是-5℃，相差多少℃？")
    assert (result["equation"], result["value"]) == ("(1/2)-(-5)", "11/2")
    assert result["numbers"] == ["(1/2)", "-5"]
    (result,) = solver("余额是-￥5，小明有1又1/2元，付了25 %，还有多少元？")
    assert (result["equation"], result["value"]) == ("(-5)-1(1/2)", "-13/2")
    assert result["numbers"] == ["-5", "1(1/2)", "25%"]


def test_a_text_of_another_language_comes_with_a_warning(solver):
    (result,) = solver("Q4 鑫 7 鑫鑫鑫 有 2 个")
    assert 0.2 < result["unknown_share"] < 1
    assert "vocabulary" in result["warning"]
    assert "warning" not in solver(TEXT)[0]


def test_division_by_zero_is_told(solver, monkeypatch):
    always(solver, monkeypatch, "N0/(N1-N1)")
    (result,) = solver(TEXT)
    assert (result["answer"], result["value"], result["equation"]) == (None, None, "4/(2-2)")
    assert "division by zero" in result["error"]


def test_an_unfinished_tree_is_no_answer(solver, monkeypatch):
    always(solver, monkeypatch, "N0+N1", "N0-N1", finished=[False, True])
    assert "finished" in solver(TEXT)[0]["error"]
    assert [result["equation"] for result in solver(TEXT, top_k=2)] == ["4-2"]


def test_long_text_is_cut_and_says_so(solver):
    (result,) = solver("小明有4个苹果，" + "苹果" * 5000 + "又买了2个")
    assert len(result["numbers"]) == 2
    assert re.search("64 tokens.* 1 of .* 2 numbers", result["warning"])


def test_a_text_that_is_too_long_is_told_and_the_others_are_answered(solver):
    first, long, last = solver([TEXT, "4" * 10_000_000, TEXT], batch_size=3)
    assert first == last and first["numbers"] == ["4", "2"]
    assert (long["answer"], long["numbers"], long["score"]) == (None, [], 0.0)
    assert "100,000 characters" in long["error"]


@pytest.mark.parametrize("options", [{}, {"confidence_threshold": 0.5}, {"num_beams": 2}])
def test_a_text_whose_numbers_lie_beyond_the_cut_gets_no_answer(solver, options):
    (result,) = solver("苹果" * 100 + TEXT, **options)
    assert (result["answer"], result["equation"], result["score"]) == (None, None, 0.0)
    assert "64 tokens" in result["error"] and "2 of its 2 numbers" in result["warning"]
    assert result["numbers"] == ["4", "2"] and "status" not in result


def test_two_hundred_numbers(solver):
    (result,) = solver("，".join(str(number) for number in range(200)))
    assert len(result["numbers"]) == 200
    assert "64 tokens" in result["warning"]
    assert result["answer"] is not None or "error" in result


def test_emoji_and_full_width_digits(solver, monkeypatch):
    always(solver, monkeypatch, "N0+N1")
    (result,) = solver("小明有４个🍎，又买了１２．５个🍐🍐")
    assert result["value"] == "33/2"


@pytest.mark.parametrize("problem", [3, None, b"4+2", ["4"]])
def test_what_is_no_text_is_an_error(solver, problem):
    with pytest.raises(TypeError, match="MathWordProblem"):
        solver([problem])
    texts = [TEXT] * 17 + [problem, TEXT]
    for inputs in (texts, (text for text in texts)):
        with pytest.raises(TypeError, match=r"inputs\[17\]: A problem is a text"):
            list(solver(inputs, batch_size=4))


@pytest.mark.parametrize("name", ["num_beams", "top_k", "max_decode_length"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2"])
def test_wrong_parameters_are_named(solver, name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{value}"):
        solver(TEXT, **{name: value})


def test_saving_and_loading(solver, tmp_path):
    solver.save_pretrained(tmp_path)
    again = pipeline("math-word-problem", model=str(tmp_path), device="cpu")
    assert again(TEXT) == solver(TEXT)


def test_a_processor_can_be_given(solver, folder):
    model = solver.model
    assert MathWordProblemPipeline(model=model, processor=str(folder), device="cpu")(TEXT) == solver(TEXT)
    other = tiny_processor()
    other.vocabulary = type(other.vocabulary)(other.vocabulary.operators, ("9",))
    with pytest.raises(ValueError, match=r"processor.*\['1'\].*\['9'\]"):
        MathWordProblemPipeline(model=model, processor=other)


def test_a_model_without_processor(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "mwp_processor.json").unlink()
    with pytest.raises(ValueError, match="mwp_processor.json.*`processor="):
        pipeline("math-word-problem", model=str(tmp_path / "copy"))
    with pytest.raises(ValueError, match="`processor=`"):
        MathWordProblemPipeline(model=tiny_solver(tiny_processor()))


def test_a_folder_that_is_no_solver(tmp_path):
    encoder = BertModel(tiny_bert_config())
    encoder.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="MwpSolver.*BertModel"):
        MathWordProblemPipeline(model=encoder)
    with pytest.raises(Exception, match="mwp_solver|MwpSolver"):
        pipeline("math-word-problem", model=str(tmp_path))
    with pytest.raises((OSError, ValueError), match="config.json|nothing_here"):
        pipeline("math-word-problem", model=str(tmp_path / "nothing_here"))
    assert AutoConfig.from_pretrained(tmp_path).model_type == "bert"


@pytest.mark.parametrize("kind", ["encoder", "no tokenizer", "missing weights", "cut off", "small encoder"])
def test_what_is_wrong_with_a_folder_is_one_line(folder, tmp_path, kind):
    path = shutil.copytree(folder, tmp_path / "copy")
    if kind == "encoder":
        AutoModel.from_pretrained(path).encoder.save_pretrained(path)
    elif kind == "no tokenizer":
        (path / "tokenizer.json").unlink()
    elif kind == "missing weights":
        drop_weights(path, "decoder.merge")
    elif kind == "cut off":
        cut(path / "model.safetensors")
    else:
        tiny_processor(indexed_numbers=True).save_pretrained(path)
    message = {
        "encoder": "MwpStudentModel",
        "no tokenizer": "tokenizer.json",
        "missing weights": "2 weights",
        "cut off": "model.safetensors",
        "small encoder": "tokenizer",
    }[kind]
    with pytest.raises((ValueError, SolverFolderError)) as error:
        pipeline("math-word-problem", model=str(path), device="cpu")
    assert message in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_below_min_score_it_is_unsure_and_names_the_candidates(solver, monkeypatch):
    scores = [-1.0, -2.0, -3.0]
    always(solver, monkeypatch, "N0+N1", "N0-N1", "N0/(N1-N1)", scores=scores)
    (result,) = solver(TEXT, num_beams=3, confidence_threshold=0.5)
    first, second, third = (pytest.approx(math.exp(score)) for score in scores)
    assert result == {
        "answer": None,
        "value": None,
        "equation": None,
        "prefix": None,
        "numbers": ["4", "2"],
        "score": first,
        "unknown_share": 0.0,
        "error": result["error"],
        "status": "unsure",
        "candidates": [
            {"equation": "4+2", "answer": 6.0, "value": "6", "score": first},
            {"equation": "4-2", "answer": 2.0, "value": "2", "score": second},
            {"equation": "4/(2-2)", "answer": None, "value": None, "score": third},
        ],
    }
    assert re.search(r"0\.3679.*0\.5", result["error"])
    (results,) = [solver(TEXT, num_beams=3, top_k=2, confidence_threshold=0.5)]
    assert [each.get("status") for each in results] == ["unsure"] and len(results[0]["candidates"]) == 3
    (greedy,) = solver(TEXT, confidence_threshold=0.5)
    assert [each["equation"] for each in greedy["candidates"]] == ["4+2"]


def test_from_min_score_on_it_answers_as_ever(solver, monkeypatch):
    always(solver, monkeypatch, "N0+N1", "N0-N1", "N0*N1", scores=[-0.5, -2.0, -3.0])
    plain = solver(TEXT, num_beams=3, top_k=2)
    assert solver(TEXT, num_beams=3, top_k=2, confidence_threshold=0.6) == plain and len(plain) == 2
    assert solver([TEXT], num_beams=3, confidence_threshold=0) == solver([TEXT], num_beams=3)
    assert solver(TEXT, confidence_threshold=math.exp(-0.5))[0]["equation"] == "4+2"
    assert "status" not in solver("没有数字", confidence_threshold=1)[0]


def test_min_score_of_the_pipeline_itself(folder, monkeypatch):
    solver = pipeline("math-word-problem", model=str(folder), device="cpu", confidence_threshold=0.9)
    always(solver, monkeypatch, "N0+N1")
    assert solver(TEXT)[0]["status"] == "unsure"
    assert solver(TEXT, confidence_threshold=0.1)[0]["answer"] == 6


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan, "0.5", True])
def test_min_score_is_a_probability(solver, value):
    with pytest.raises(ValueError, match="`confidence_threshold`.* 0 .* 1"):
        solver(TEXT, confidence_threshold=value)
