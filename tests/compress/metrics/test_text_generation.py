"""Metrics of generated texts against sacrebleu's and rouge-score's own functions."""

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from hf_mwp.solver.metrics import text_figures, text_report
from hf_mwp.utils.usage_error import UsageError


REFERENCES = ["a dog runs on green grass", "two men are sitting on a bench outside", "he sings"]
PREDICTIONS = ["a dog runs on the grass", "two men sit on a bench outside", "he sings"]
METRICS = ["bleu", "chrf", "rouge"]


def test_metrics_equal_those_of_the_packages():
    report = text_report(PREDICTIONS, REFERENCES, METRICS)
    assert list(report) == text_figures(METRICS)
    assert report["bleu"] == sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES]).score
    assert report["chrf"] == sacrebleu.corpus_chrf(PREDICTIONS, [REFERENCES]).score
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    total = 0
    for reference, prediction in zip(REFERENCES, PREDICTIONS, strict=True):
        total += scorer.score(reference, prediction)["rougeL"].fmeasure
    assert report["rougeL"] == pytest.approx(100 * total / 3)


def test_chinese_is_compared_by_characters():
    prediction = ["小明有四个苹果"]
    reference = ["小明有五个苹果"]
    by_characters = text_report(prediction, reference, ["bleu"], "zh")["bleu"]
    assert by_characters > 30 > text_report(prediction, reference, ["bleu"])["bleu"]


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        # Four of six characters, then three of five pairs.
        ("我们喜欢苹果", "我们喜欢香蕉", [400 / 6, 60.0, 400 / 6]),
        ("Собака бежит", "собака спит", [50.0, 0.0, 50.0]),
        # Words of a Latin script as before.
        ("the dogs run", "the dog runs", [100.0] * 3),
    ],
)
def test_rouge_in_other_scripts(prediction, reference, expected):
    assert [*text_report([prediction], [reference], ["rouge"]).values()] == pytest.approx(expected)


def test_unknown_metrics_and_missing_packages_raise(monkeypatch):
    assert text_report([], []) == {}
    with pytest.raises(UsageError, match="'blue'.*bleu, chrf, rouge"):
        text_report(["a"], ["a"], ["blue"])
    monkeypatch.setattr("hf_mwp.compress.metrics.text_generation.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"bleu, chrf need sacrebleu: pip install 'hf-mwp\[seq2seq\]'"):
        text_figures(["bleu", "chrf"])
