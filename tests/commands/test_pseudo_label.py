"""Equations for problems that have none."""

import contextlib
import re

import pytest

from hf_mwp import MwpProcessor, MwpSolver, load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.metrics import score_prediction
from hf_mwp.solver.solving import kept_records
from hf_mwp.solver.solving import solve_problems as solving
from hf_mwp.solver.solving.solve_problems import solve_problems
from tests.commands.folders import read_json, read_rows, write_rows
from tests.slow_parameters import slow_after


TEXTS = ["小明有4个苹果和2个梨，一共有多少个水果？", "一本书有30页，看了12页，还剩几页？"]


@pytest.fixture(scope="module")
def loaded(solver_folder):
    """The solver and its processor."""
    return MwpSolver.from_pretrained(solver_folder), MwpProcessor.from_pretrained(solver_folder)


@pytest.fixture(scope="module")
def values(loaded):
    """Values of the trees that the solver finds for each text, best first."""
    rows = [{"text": text, "language": "zh", "answer": "1"} for text in TEXTS]
    values = []
    for prediction in solve_problems(*loaded, rows, num_beams=8, top_k=8):
        values.append([score_prediction(prediction.problem, tree).value for tree, _ in prediction.beam.trees])
    return values


@pytest.fixture
def argv(solver_folder, tmp_path):
    """Arguments of the command, which labels `answers.jsonl`."""
    argv = ["pseudo-label", "--model", str(solver_folder), "--problems", str(tmp_path / "answers.jsonl")]
    return [*argv, "--num_beams=8", "--output_dir", str(tmp_path / "run")]


@pytest.fixture
def label(argv, tmp_path):
    """Function that writes problems to `answers.jsonl`, runs the command, and returns the labelled problems."""

    def label(rows, *options):
        write_rows(tmp_path / "answers.jsonl", rows)
        assert main([*argv, *options]) == 0
        return read_rows(tmp_path / "run" / "labelled.jsonl")

    return label


def fates(tmp_path):
    numbers = read_json(tmp_path / "run" / "metrics.json")["fates"]
    return {fate: number for fate, number in numbers.items() if number}


def test_first_tree_with_the_right_value_is_the_label(label, tmp_path, values, capsys):
    value = next(value for value in values[0][1:] if value is not None and value != values[0][0])
    rows = [
        {"id": 7, "text": TEXTS[0], "answer": str(value), "equation": "x=1"},
        {"id": 8, "text": TEXTS[1], "answer": "123456789"},
        {"id": 9, "text": TEXTS[0].replace("4", "40"), "answer": "3"},
        {"id": 10, "text": "没有数？", "answer": "3"},
        {"id": 11, "text": "有1个", "answer": "许多"},
        {"id": 12, "text": TEXTS[0], "answer": ["1", "2"]},
    ]
    (labelled,) = label(rows)
    assert (labelled["id"], labelled["text"], labelled["rank"]) == ("7", TEXTS[0], values[0].index(value))
    assert labelled["log_probability"] < 0
    output = " ".join(capsys.readouterr().out.split())
    for words in ("1 │ labelled", "1 │ not found", "1 │ duplicate", "3 │ no answer", "0 │ excluded"):
        assert words in output
    assert fates(tmp_path) == {"labelled": 1, "not found": 1, "duplicate": 1, "no answer": 3}
    # It is training data: its equation has its answer as its value.
    (row,) = load_mwp_dataset(tmp_path / "run" / "labelled.jsonl")["train"]
    assert row["answer"] == str(value)


@pytest.mark.parametrize("reranked", slow_after(1, [False, True]))
def test_most_certain_problems_without_an_answer_are_labelled(label, loaded, tmp_path, reranked):
    # Two of the four texts differ in a number alone.
    texts = []
    for number in (4, 5):
        texts += [text.replace("4", str(number)).replace("页", "页" * number) for text in TEXTS]
    rows = [{"id": index, "text": text} for index, text in enumerate(texts)]
    rows.append({"text": "有1个和2个，一共几个？", "answer": "123456789"})
    options = []
    reranker = None
    if reranked:
        weights = {feature.name: 0.0 for feature in FEATURES} | {"rank": 99.0}
        reranker = PlausibilityReranker("zh", weights, 8)
        reranker.save_pretrained(tmp_path)
        options = ["--reranker", str(tmp_path)]
    labelled = label(rows, "--pseudo_label_fraction=0.6", *options)
    distinct = [{"text": texts[index], "language": "zh"} for index in (0, 1, 3)]
    predictions = solve_problems(*loaded, distinct, num_beams=8, reranker=reranker)
    surest = sorted(predictions, key=lambda prediction: -prediction.confidence)[:2]
    surest.sort(key=predictions.index)
    for row, prediction in zip(labelled, surest, strict=True):
        problem = prediction.problem
        assert row["text"] == problem.text
        assert row["confidence"] == pytest.approx(prediction.confidence)
        assert row["equation"] == prediction.expression.bind(problem.numbers).to_infix()
        assert row["answer"] is None
    assert fates(tmp_path) == {"surest": 2, "unsure": 1, "not found": 1, "duplicate": 1}
    assert len(load_mwp_dataset(tmp_path / "run" / "labelled.jsonl")["train"]) == 2
    assert label(rows, "--overwrite", "--pseudo_label_fraction=0.1", *options) == []


@pytest.fixture
def answered(values):
    """The texts, with the value of the most probable tree as answer."""
    return [{"text": text, "answer": str(tree_values[0])} for text, tree_values in zip(TEXTS, values, strict=True)]


@pytest.mark.parametrize(
    "held_out", [TEXTS[0].replace("4", "9"), TEXTS[0].replace("4", "四").replace("？", " ?").replace("，", "")]
)
def test_excluded_texts_are_not_labelled(label, answered, tmp_path, held_out):
    path = write_rows(tmp_path / "held_out.jsonl", [{"text": held_out}])
    labelled = label(answered, "--exclude", str(path))
    assert [row["text"] for row in labelled] == TEXTS[1:]


@pytest.mark.slow
def test_problems_tried_before_a_kill_are_not_tried_again(label, argv, answered, tmp_path, monkeypatch):
    expected = label(answered)
    monkeypatch.setattr(kept_records, "AT_ONCE", 1)
    find_beams = solving.find_beams
    tried = []

    def find_beams_until_killed(model, processor, problems, *options, **settings):
        tried.append(problems[0].text)
        if len(tried) == 2:
            raise KeyboardInterrupt
        return find_beams(model, processor, problems, *options, **settings)

    monkeypatch.setattr(solving, "find_beams", find_beams_until_killed)
    with contextlib.suppress(KeyboardInterrupt):
        main([*argv, "--overwrite"])
    # The file of the finished run still exists, and that of this run replaces it.
    labelled = label(answered)
    assert tried == [TEXTS[0], TEXTS[1], TEXTS[1]]
    for row, expected_row in zip(labelled, expected, strict=True):
        assert row == {**expected_row, "log_probability": pytest.approx(expected_row["log_probability"])}
    assert not (tmp_path / "run" / "unfinished").exists()


def test_separator_of_unicode_ends_no_line(label, values):
    text = TEXTS[1].replace("，", "\u2028\x85")
    (labelled,) = label([{"text": text, "answer": str(values[1][0])}])
    assert labelled["text"] == text


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({}, ["--problems=nowhere.jsonl"], "nowhere.jsonl"),
        ({"text": "Tom has 4.", "answer": "4", "language": "en"}, [], r"line 1, field language: .*\bzh\b"),
        ({"text": "没有数？", "answer": "4"}, [], "1 no answer"),
        ({}, ["--num_beams=0"], "`num_beams`.* 0"),
        ({}, ["--rerank"], "`rerank`.*`pseudo_label_fraction`"),
    ],
)
def test_wrong_input_is_named(argv, tmp_path, error_of, row, options, message):
    write_rows(tmp_path / "answers.jsonl", [row])
    assert re.search(message, error_of(*argv, *options))
    assert not (tmp_path / "run" / "labelled.jsonl").exists()


def test_labels_are_replaced_only_on_demand(label, argv, answered, tmp_path, error_of):
    before = label(answered)
    assert re.search(r"labelled\.jsonl.*--overwrite", error_of(*argv))
    assert label(answered, "--overwrite") == before
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "run.json").write_text('{"command": "hf-mwp train"}')
    assert "`hf-mwp train`" in error_of(*argv, "--output_dir", tmp_path / "model")
