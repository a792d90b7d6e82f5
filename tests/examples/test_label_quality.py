"""The example script that compares pseudo-labels with annotations."""

import sys

import pytest

from hf_mwp import Expression, MathWordProblem
from tests.examples.scripts import load_script, write_json_lines


@pytest.fixture(scope="module")
def script():
    return load_script("label_quality.py")


@pytest.mark.parametrize(
    ("text", "annotation", "label", "judgement"),
    [
        ("4个和2个", "x=4+2", "2+4", "same"),
        ("4个和2个", "x=4+2", "4+2+0", "equivalent"),
        ("2个和2元", "x=2+2", "2*2", "by chance"),
        ("借出156本，剩78本，还回45本", "x=78+45", "156-78+45", "by chance"),
        ("原价100元，打20%的折", "x=100*(1-20%)", "100-100*20%", "equivalent"),
        ("4个和2个", None, "4+2", "not judged"),
        ("4个和2个", "x+", "4+2", "not judged"),
    ],
)
def test_judgement_of_a_label(script, text, annotation, label, judgement):
    assert script.judge(MathWordProblem(text, annotation), label) == judgement


def test_trees_without_a_value_do_not_mean_the_same(script):
    first = Expression.from_infix("N0/(N1-N1)")
    second = Expression.from_infix("N1/(N1-N1)")
    assert not script.mean_the_same(first, second, 2)


ROWS = [
    {"text": "2个和2元？", "equation": "2+2", "answer": "4"},
    {"text": "有3个和5个？", "equation": "3+5", "answer": "8"},
]


@pytest.fixture
def labelled(tmp_path):
    rows = [ROWS[0] | {"equation": "2*2"}, ROWS[1] | {"equation": "5+3"}]
    return write_json_lines(tmp_path / "labelled.jsonl", rows)


def test_counts_are_printed(script, labelled, tmp_path, monkeypatch, capsys):
    annotated = write_json_lines(tmp_path / "annotated.jsonl", ROWS)
    monkeypatch.setattr(sys, "argv", ["label_quality.py", labelled, annotated])
    script.main()
    assert "Right: 1 of 2" in capsys.readouterr().out


def test_label_without_an_annotation_is_named(script, labelled, tmp_path):
    annotated = write_json_lines(tmp_path / "annotated.jsonl", ROWS[:1])
    with pytest.raises(ValueError, match=r"labelled\.jsonl, line 2"):
        script.count_kinds(labelled, annotated, None)
