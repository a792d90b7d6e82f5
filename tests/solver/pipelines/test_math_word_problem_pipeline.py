import math
import shutil

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import AutoModel, BertModel, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import hf_mwp  # noqa: F401 (registers the task)
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.models.mwp_solver import SolverFolderError
from hf_mwp.solver.pipelines import MathWordProblemPipeline
from tests.damage import cut, drop_weights
from tests.tiny import tiny_bert_config, tiny_processor, tiny_rows, tiny_solver


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


def test_output(solver, fix_search):
    fix_search("N0+N1")
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


@pytest.mark.parametrize(
    ("text", "expression", "expected"),
    [
        ("把7个苹果平均分给4人", "N1/N0", {"equation": "4/7", "value": "4/7", "answer": 4 / 7}),
        ("小明有4个苹果，又买了2盒", "N0", {"equation": "4", "answer": 4.0, "prefix": ["N0"]}),
        (
            "最高气温是1/2℃，最低气温是-5℃，相差多少℃？",
            "N0-N1",
            {"equation": "(1/2)-(-5)", "value": "11/2", "numbers": ["(1/2)", "-5"]},
        ),
        (
            "余额是-￥5，小明有1又1/2元，付了25 %，还有多少元？",
            "N0-N1",
            {"equation": "(-5)-1(1/2)", "value": "-13/2", "numbers": ["-5", "1(1/2)", "25%"]},
        ),
        ("小明有４个🍎，又买了１２．５个🍐🍐", "N0+N1", {"value": "33/2"}),
        (TEXT, "N0/(N1-N1)", {"answer": None, "value": None, "equation": "4/(2-2)"}),
    ],
)
def test_equations_and_values(solver, fix_search, text, expression, expected):
    fix_search(expression)
    (result,) = solver(text)
    assert {name: result[name] for name in expected} == expected
    if expected.get("answer", 0) is None:
        assert "division by zero" in result["error"]


class Texts(torch.utils.data.Dataset):
    """A dataset of PyTorch that has a length and no last index."""

    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index % len(self.texts)]


INPUTS = {
    "list": list,
    "generator": iter,
    "tuple": tuple,
    "array": np.array,
    "column": lambda texts: Dataset.from_dict({"text": texts})["text"],
    "streamed column": lambda texts: Dataset.from_dict({"text": texts}).to_iterable_dataset()["text"],
    "data frame": lambda texts: Dataset.from_dict({"text": texts}).to_pandas()["text"],
    "key dataset": lambda texts: KeyDataset(Dataset.from_dict({"text": texts}), "text"),
    "dataset of PyTorch": Texts,
    "problems": lambda texts: [MathWordProblem(text=text) for text in texts],
}


@pytest.fixture(scope="module")
def texts():
    return [row["text"] for row in tiny_rows(3)]


@pytest.fixture(scope="module")
def single_results(solver, texts):
    return [solver(text)[0] for text in texts]


def check_results(results, expected):
    for result, single in zip(results, expected, strict=True):
        assert result == single | {"score": pytest.approx(single["score"], rel=1e-4)}


@pytest.mark.parametrize("name", INPUTS)
def test_all_types_of_input_give_the_same_results(solver, texts, single_results, name):
    check_results(solver(INPUTS[name](texts), batch_size=2), single_results)


def test_texts_of_a_list_are_sorted_by_length_in_blocks_of_eight_batches(solver):
    texts = [f"{number}个苹果和4个{'大' * (7 * number % 20)}梨" for number in range(1, 20)]
    widths = []
    hook = solver.model.encoder.register_forward_pre_hook(
        lambda encoder, inputs, arguments: widths.append(arguments["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        results = solver(texts, batch_size=2)
    finally:
        hook.remove()
    assert widths[:8] == sorted(widths[:8], reverse=True)
    assert len(widths) == 10
    check_results(results, [solver(text)[0] for text in texts])


def test_iterator_is_read_one_batch_ahead(solver, texts):
    read = []

    def problems():
        for number in range(100):
            read.append(number)
            yield texts[0]

    next(iter(solver(problems(), batch_size=2)))
    assert len(read) <= 4


def test_workers_give_the_same_results(solver, texts, single_results):
    check_results(solver(texts, num_workers=1), single_results)


def test_no_inputs_give_no_results(solver):
    assert solver([]) == solver(Dataset.from_dict({"text": []})["text"]) == []


def test_beams_and_top_k(solver):
    results = solver(TEXT, top_k=3)
    scores = [result["score"] for result in results]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(result["prefix"]) for result in results}) == 3
    batch_results = solver([TEXT, TEXT], top_k=2)
    assert len(batch_results[0]) == 2
    assert batch_results[1][0]["prefix"] == solver(TEXT, num_beams=2)[0]["prefix"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        (" \n", ["empty"]),
        ("一共有几个苹果？", ["number"]),
        ("4个\ud800和2个", ["U+D800", "position 2"]),
        ("有1e999个苹果和2个梨", ["1e999"]),
        ("4" * 10_000_000, ["100,000 characters"]),
    ],
)
def test_unsolvable_text_gets_an_error_and_others_are_solved(solver, text, words):
    first, refused, last = solver([TEXT, text, TEXT], batch_size=3)
    assert first == last
    assert first["numbers"] == ["4", "2"]
    assert (refused["answer"], refused["equation"], refused["score"]) == (None, None, 0.0)
    for word in words:
        assert word in refused["error"]


def test_text_of_another_language_gets_a_warning(solver):
    (result,) = solver("Q4 鑫 7 鑫鑫鑫 有 2 个")
    assert 0.2 < result["unknown_share"] < 1
    assert "vocabulary" in result["warning"]
    assert "warning" not in solver(TEXT)[0]


def test_unfinished_expressions_are_not_answers(solver, fix_search):
    fix_search("N0+N1", "N0-N1", finished=[False, True])
    assert "finished" in solver(TEXT)[0]["error"]
    assert [result["equation"] for result in solver(TEXT, top_k=2)] == ["4-2"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("num_texts", [1, 2])
def test_candidates_are_complete_at_any_limit_of_the_length(solver, limit, num_texts):
    for results in solver([TEXT] * num_texts, top_k=6, max_decode_length=limit):
        assert results
        for result in results:
            assert len(result["prefix"]) <= limit
            Expression.from_prefix(result["prefix"])


def test_numbers_that_are_cut_off_are_in_a_warning(solver):
    (result,) = solver("小明有4个苹果，" + "苹果" * 5000 + "又买了2个")
    assert len(result["numbers"]) == 2
    assert "64 tokens" in result["warning"]
    assert "1 of its 2 numbers" in result["warning"]


@pytest.mark.parametrize("options", [{}, {"confidence_threshold": 0.5}, {"num_beams": 2}])
def test_text_whose_numbers_are_all_cut_off_gets_no_answer(solver, options):
    (result,) = solver("苹果" * 100 + TEXT, **options)
    assert (result["answer"], result["equation"], result["score"]) == (None, None, 0.0)
    assert "64 tokens" in result["error"]
    assert "2 of its 2 numbers" in result["warning"]
    assert result["numbers"] == ["4", "2"]
    assert "status" not in result


@pytest.mark.parametrize("problem", [3, None, b"4+2", ["4"]])
def test_input_that_is_not_a_text_is_named(solver, problem):
    with pytest.raises(TypeError, match="MathWordProblem"):
        solver([problem])
    inputs = [TEXT] * 5 + [problem, TEXT]
    for batch in (inputs, iter(inputs)):
        with pytest.raises(TypeError, match=r"inputs\[5\]: A problem is a text"):
            list(solver(batch, batch_size=4))


@pytest.mark.parametrize("name", ["num_beams", "top_k", "max_decode_length"])
@pytest.mark.parametrize("value", [0, 1.5, "2"])
def test_wrong_parameters_are_named(solver, name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{value}"):
        solver(TEXT, **{name: value})


def test_saved_pipeline_gives_the_same_results(solver, tmp_path):
    solver.save_pretrained(tmp_path)
    loaded = pipeline("math-word-problem", model=str(tmp_path), device="cpu")
    assert loaded(TEXT) == solver(TEXT)


def test_processor_is_passed_or_loaded(solver, solver_folder):
    with_folder = MathWordProblemPipeline(model=solver.model, processor=str(solver_folder), device="cpu")
    assert with_folder(TEXT) == solver(TEXT)
    processor = tiny_processor()
    processor.vocabulary = type(processor.vocabulary)(processor.vocabulary.operators, ("9",))
    with pytest.raises(ValueError, match=r"processor.*\['1'\].*\['9'\]"):
        MathWordProblemPipeline(model=solver.model, processor=processor)
    with pytest.raises(ValueError, match="`processor=`"):
        MathWordProblemPipeline(model=tiny_solver(tiny_processor()))


def test_pipeline_needs_a_solver(tmp_path):
    with pytest.raises(ValueError, match="no default model.*model="):
        pipeline("math-word-problem")
    encoder = BertModel(tiny_bert_config())
    encoder.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="MwpSolver.*BertModel"):
        MathWordProblemPipeline(model=encoder)
    with pytest.raises(Exception, match="mwp_solver|MwpSolver"):
        pipeline("math-word-problem", model=str(tmp_path))
    with pytest.raises((OSError, ValueError), match="config.json|nothing_here"):
        pipeline("math-word-problem", model=str(tmp_path / "nothing_here"))


def save_only_the_encoder(folder):
    AutoModel.from_pretrained(folder).encoder.save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (save_only_the_encoder, "MwpStudentModel"),
        (lambda folder: (folder / "mwp_processor.json").unlink(), "mwp_processor.json"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
        (lambda folder: drop_weights(folder, "decoder.merge"), "2 weights"),
        (lambda folder: cut(folder / "model.safetensors"), "model.safetensors"),
        (lambda folder: tiny_processor(indexed_numbers=True).save_pretrained(folder), "tokenizer"),
    ],
)
def test_damaged_folder_is_named_in_one_line(solver_folder, tmp_path, damage, message):
    folder = shutil.copytree(solver_folder, tmp_path / "copy")
    damage(folder)
    with pytest.raises((ValueError, SolverFolderError), match=message) as error:
        pipeline("math-word-problem", model=str(folder), device="cpu")
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_below_the_threshold_the_answer_is_unsure(solver, fix_search):
    fix_search("N0+N1", "N0-N1", "N0/(N1-N1)", scores=[-1.0, -2.0, -3.0])
    (result,) = solver(TEXT, num_beams=3, confidence_threshold=0.5)
    assert "0.3679" in result["error"]
    assert result == {
        "answer": None,
        "value": None,
        "equation": None,
        "prefix": None,
        "numbers": ["4", "2"],
        "score": pytest.approx(math.exp(-1)),
        "unknown_share": 0.0,
        "error": result["error"],
        "status": "unsure",
        "candidates": [
            {"equation": "4+2", "answer": 6.0, "value": "6", "score": pytest.approx(math.exp(-1))},
            {"equation": "4-2", "answer": 2.0, "value": "2", "score": pytest.approx(math.exp(-2))},
            {"equation": "4/(2-2)", "answer": None, "value": None, "score": pytest.approx(math.exp(-3))},
        ],
    }
    assert solver(TEXT, num_beams=3, top_k=2, confidence_threshold=0.5) == [result]
    (greedy,) = solver(TEXT, confidence_threshold=0.5)
    assert [candidate["equation"] for candidate in greedy["candidates"]] == ["4+2"]


def test_from_the_threshold_on_the_answers_are_the_usual_ones(solver, fix_search):
    fix_search("N0+N1", "N0-N1", "N0*N1", scores=[-0.5, -2.0, -3.0])
    results = solver(TEXT, num_beams=3, top_k=2)
    assert len(results) == 2
    assert solver(TEXT, num_beams=3, top_k=2, confidence_threshold=0.6) == results
    assert solver([TEXT], num_beams=3, confidence_threshold=0) == solver([TEXT], num_beams=3)
    assert solver(TEXT, confidence_threshold=math.exp(-0.5))[0]["equation"] == "4+2"
    assert "status" not in solver("没有数字", confidence_threshold=1)[0]


def test_threshold_of_the_pipeline_is_replaced_by_that_of_the_call(solver_folder):
    solver = pipeline("math-word-problem", model=str(solver_folder), device="cpu", confidence_threshold=0.9)
    assert solver(TEXT)[0]["status"] == "unsure"
    assert "status" not in solver(TEXT, confidence_threshold=0.0)[0]


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan, "0.5", True])
def test_threshold_must_be_a_probability(solver, value):
    with pytest.raises(ValueError, match="`confidence_threshold`.* 0 .* 1"):
        solver(TEXT, confidence_threshold=value)
