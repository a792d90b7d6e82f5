"""Equations for problems that have none."""

import contextlib
import json
import re

import pytest

from hf_mwp import MwpProcessor, MwpSolver, load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.metrics import score_prediction
from hf_mwp.solver.solving import kept_records
from hf_mwp.solver.solving import solve_problems as solving
from hf_mwp.solver.solving.solve_problems import solve_problems


TEXTS = ["小明有4个苹果和2个梨，一共有多少个水果？", "一本书有30页，看了12页，还剩几页？"]


@pytest.fixture
def found(solver_folder):
    """Values of the trees that the solver finds for each text, best first."""
    model = MwpSolver.from_pretrained(solver_folder)
    processor = MwpProcessor.from_pretrained(solver_folder)
    rows = [{"text": text, "language": "zh", "answer": "1"} for text in TEXTS]
    found = solve_problems(model, processor, rows, num_beams=8, top_k=8)
    return [[score_prediction(each.problem, tree).value for tree, _ in each.beam.trees] for each in found]


def write(path, records):
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return str(path)


def run(solver_folder, tmp_path, *more):
    argv = ["pseudo-label", "--model", str(solver_folder), "--problems", str(tmp_path / "answers.jsonl")]
    return main([*argv, "--num_beams=8", "--output_dir", str(tmp_path / "run"), *more])


def label(solver_folder, tmp_path, *more):
    assert run(solver_folder, tmp_path, *more) == 0
    return [json.loads(line) for line in (tmp_path / "run" / "labelled.jsonl").read_bytes().splitlines()]


def fates(tmp_path):
    counts = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))["fates"]
    return {fate: count for fate, count in counts.items() if count}


def test_the_first_tree_with_the_right_value_is_the_label(solver_folder, tmp_path, found, capsys):
    value = next(value for value in found[0][1:] if value is not None and value != found[0][0])
    records = [
        {"id": 7, "text": TEXTS[0], "answer": str(value), "equation": "x=1"},
        {"id": 8, "text": TEXTS[1], "answer": "123456789"},
        {"id": 9, "text": TEXTS[0].replace("4", "40"), "answer": "3"},
        {"id": 10, "text": "没有数？", "answer": "3"},
        {"id": 11, "text": "有1个", "answer": "许多"},
        {"id": 12, "text": TEXTS[0], "answer": ["1", "2"]},
    ]
    write(tmp_path / "answers.jsonl", records)
    (labelled,) = label(solver_folder, tmp_path)
    assert (labelled["id"], labelled["text"], labelled["rank"]) == ("7", TEXTS[0], found[0].index(value))
    assert labelled["log_probability"] < 0
    shown = " ".join(capsys.readouterr().out.split())
    for line in ("1 │ labelled", "1 │ not found", "1 │ duplicate", "3 │ no answer", "0 │ excluded"):
        assert line in shown
    assert fates(tmp_path) == {"labelled": 1, "not found": 1, "duplicate": 1, "no answer": 3}
    # It is training data: its equation gives its answer.
    (row,) = load_mwp_dataset(tmp_path / "run" / "labelled.jsonl")["train"]
    assert row["answer"] == str(value)


@pytest.mark.parametrize("reranked", [False, True])
def test_the_surest_of_the_problems_without_an_answer_get_the_solvers_own(solver_folder, tmp_path, capsys, reranked):
    texts = [text.replace("4", str(number)).replace("页", "页" * number) for number in (4, 5) for text in TEXTS]
    answered = {"text": "有1个和2个，一共几个？", "answer": "123456789"}
    write(tmp_path / "answers.jsonl", [{"id": place, "text": text} for place, text in enumerate(texts)] + [answered])
    reranker = PlausibilityReranker("zh", {each.name: 0.0 for each in FEATURES} | {"rank": 99.0}, 8)
    reranker.save_pretrained(tmp_path)
    more = ["--reranker", str(tmp_path)] if reranked else []
    # Of four texts two are one, but for its number.
    labelled = label(solver_folder, tmp_path, "--pseudo_label_fraction=0.6", *more)
    model = MwpSolver.from_pretrained(solver_folder)
    processor = MwpProcessor.from_pretrained(solver_folder)
    rows = [{"text": text, "language": "zh"} for text in (texts[0], texts[1], texts[3])]
    own = solve_problems(model, processor, rows, num_beams=8, reranker=reranker if reranked else None)
    surest = sorted(own, key=lambda each: -each.confidence)[:2]
    assert {each["text"]: each["confidence"] for each in labelled} == {
        each.problem.text: pytest.approx(each.confidence) for each in surest
    }
    for row, each in zip(labelled, sorted(surest, key=lambda each: texts.index(each.problem.text)), strict=True):
        assert row["equation"] == each.expression.bind(each.problem.numbers).to_infix() and row["answer"] is None
    assert fates(tmp_path) == {"surest": 2, "unsure": 1, "not found": 1, "duplicate": 1}
    assert len(load_mwp_dataset(tmp_path / "run" / "labelled.jsonl")["train"]) == 2
    assert label(solver_folder, tmp_path, "--overwrite", "--pseudo_label_fraction=0.1", *more) == []


def test_excluded_texts_are_not_labelled(solver_folder, tmp_path, found):
    write(tmp_path / "answers.jsonl", [{"text": t, "answer": str(v[0])} for t, v in zip(TEXTS, found, strict=True)])
    assert [each["text"] for each in label(solver_folder, tmp_path)] == TEXTS
    write(tmp_path / "held_out.jsonl", [{"text": TEXTS[0].replace("4", "9")}])
    rest = label(solver_folder, tmp_path, "--overwrite", "--exclude", str(tmp_path / "held_out.jsonl"))
    assert [each["text"] for each in rest] == TEXTS[1:]
    # Another way to write it is no way around.
    write(tmp_path / "held_out.jsonl", [{"text": TEXTS[0].replace("4", "四").replace("？", " ?").replace("，", "")}])
    rest = label(solver_folder, tmp_path, "--overwrite", "--exclude", str(tmp_path / "held_out.jsonl"))
    assert [each["text"] for each in rest] == TEXTS[1:]


def test_what_was_tried_before_a_kill_is_not_tried_again(solver_folder, tmp_path, found, monkeypatch):
    answers = [{"text": text, "answer": str(values[0])} for text, values in zip(TEXTS, found, strict=True)]
    write(tmp_path / "answers.jsonl", answers)
    whole = label(solver_folder, tmp_path)
    monkeypatch.setattr(kept_records, "AT_ONCE", 1)
    tried = []

    def killed(model, processor, problems, *options, **settings):
        tried.append(problems[0].text)
        if len(tried) == 2:
            raise KeyboardInterrupt
        return find_beams(model, processor, problems, *options, **settings)

    find_beams = solving.find_beams
    monkeypatch.setattr(solving, "find_beams", killed)
    with contextlib.suppress(KeyboardInterrupt):
        run(solver_folder, tmp_path, "--overwrite")
    # The file of the finished run is still there, and that of this one is to replace it.
    resumed = label(solver_folder, tmp_path)
    assert tried == [TEXTS[0], TEXTS[1], TEXTS[1]]
    for one, other in zip(resumed, whole, strict=True):
        assert one == {**other, "log_probability": pytest.approx(other["log_probability"])}
    assert not (tmp_path / "run" / "unfinished").exists()


def test_a_separator_of_unicode_ends_no_line(solver_folder, tmp_path, found):
    text = TEXTS[1].replace("，", "\u2028\x85")
    write(tmp_path / "answers.jsonl", [{"text": text, "answer": str(found[1][0])}])
    (labelled,) = label(solver_folder, tmp_path)
    assert labelled["text"] == text


def test_what_is_wrong_is_named(solver_folder, tmp_path, capsys):
    argv = ["pseudo-label", "--model", str(solver_folder), "--output_dir", str(tmp_path / "run"), "--problems"]
    assert main([*argv, str(tmp_path / "nowhere.jsonl")]) == 1
    assert "nowhere.jsonl" in capsys.readouterr().err
    write(tmp_path / "answers.jsonl", [{"text": "Tom has 4 apples.", "answer": "4", "language": "en"}])
    assert main([*argv, str(tmp_path / "answers.jsonl")]) == 1
    assert re.search(r"line 1, field language: .*\bzh\b", capsys.readouterr().err)
    write(tmp_path / "answers.jsonl", [{"text": "没有数？", "answer": "4"}])
    assert main([*argv, str(tmp_path / "answers.jsonl")]) == 1
    assert "1 no answer" in capsys.readouterr().err
    assert main([*argv, str(tmp_path / "answers.jsonl"), "--num_beams=0"]) == 1
    assert re.search("`num_beams`.* 0", capsys.readouterr().err)
    assert main([*argv, str(tmp_path / "answers.jsonl"), "--rerank"]) == 1
    assert re.search("`rerank`.*`pseudo_label_fraction`", capsys.readouterr().err)
    assert not (tmp_path / "labelled.jsonl").exists()


def test_labelled_problems_are_not_written_over(solver_folder, tmp_path, found, capsys):
    write(tmp_path / "answers.jsonl", [{"text": TEXTS[0], "answer": str(found[0][0])}])
    before = label(solver_folder, tmp_path)
    argv = [
        "pseudo-label",
        "--model",
        str(solver_folder),
        "--problems",
        str(tmp_path / "answers.jsonl"),
        "--num_beams=1",
    ]
    assert main([*argv, "--output_dir", str(tmp_path / "run")]) == 1
    assert re.search(r"labelled\.jsonl.*--overwrite", capsys.readouterr().err)
    assert label(solver_folder, tmp_path, "--overwrite") == before
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "run.json").write_text('{"command": "hf-mwp train"}')
    assert main([*argv, "--output_dir", str(tmp_path / "model")]) == 1
    assert "`hf-mwp train`" in capsys.readouterr().err
