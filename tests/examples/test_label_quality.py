"""The example script that compares pseudo-labels with annotations."""

import json
import sys

import pytest

from hf_mwp import Expression, MathWordProblem
from tests.examples.scripts import load_script


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
    first, second = Expression.from_infix("N0/(N1-N1)"), Expression.from_infix("N1/(N1-N1)")
    assert not script.mean_the_same(first, second, 2)


def write_rows(path, *equations):
    texts = ["2个和2元？", "有3个和5个？"]
    answers = ["4", "8"]
    rows = zip(texts, equations, answers, strict=False)
    lines = [json.dumps(dict(zip(("text", "equation", "answer"), row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_counts_are_printed(script, tmp_path, monkeypatch, capsys):
    labelled = write_rows(tmp_path / "labelled.jsonl", "2*2", "5+3")
    annotated = write_rows(tmp_path / "annotated.jsonl", "2+2", "3+5")
    monkeypatch.setattr(sys, "argv", ["label_quality.py", labelled, annotated])
    script.main()
    assert "Right: 1 of 2" in capsys.readouterr().out


def test_label_without_an_annotation_is_named(script, tmp_path):
    labelled = write_rows(tmp_path / "labelled.jsonl", "2*2", "5+3")
    annotated = write_rows(tmp_path / "annotated.jsonl", "2+2")
    with pytest.raises(ValueError, match=r"labelled\.jsonl, line 2"):
        script.count_kinds(labelled, annotated, None)
