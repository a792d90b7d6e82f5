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
    ("text", "annotation", "label", "kind"),
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
def test_kind_of_a_label(script, text, annotation, label, kind):
    assert script.judge(MathWordProblem(text, annotation), label) == kind


def test_trees_without_a_value_do_not_mean_the_same(script):
    first, second = Expression.from_infix("N0/(N1-N1)"), Expression.from_infix("N1/(N1-N1)")
    assert not script.mean_the_same(first, second, 2)


def test_counts_are_printed(script, tmp_path, monkeypatch, capsys):
    rows = [
        {"text": "2个和2元？", "equation": "2+2", "answer": "4"},
        {"text": "有3个和5个？", "equation": "3+5", "answer": "8"},
    ]
    labels = [{**row, "equation": equation} for row, equation in zip(rows, ["2*2", "5+3"], strict=True)]
    for name, records in (("annotated", rows), ("labelled", labels)):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    paths = [str(tmp_path / f"{name}.jsonl") for name in ("labelled", "annotated")]
    monkeypatch.setattr(sys, "argv", ["label_quality.py", *paths])
    script.main()
    assert "Right: 1 of 2" in capsys.readouterr().out
    (tmp_path / "annotated.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no problem with the text of .*labelled\.jsonl, line 2"):
        script.count_kinds(*paths, None)
