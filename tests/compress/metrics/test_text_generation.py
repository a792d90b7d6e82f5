"""Metrics of generated texts against sacrebleu's and rouge-score's own functions."""

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from hf_mwp.solver.metrics import text_figures, text_report
from hf_mwp.utils.usage_error import UsageError


REFERENCES = ["a dog runs on green grass", "two men are sitting on a bench outside", "he sings"]
PREDICTIONS = ["a dog runs on the grass", "two men sit on a bench outside", "he sings"]


def test_they_are_the_figures_of_the_packages():
    report = text_report(PREDICTIONS, REFERENCES, ["bleu", "chrf", "rouge"])
    assert list(report) == text_figures(["bleu", "chrf", "rouge"])
    assert report["bleu"] == sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES]).score
    assert report["chrf"] == sacrebleu.corpus_chrf(PREDICTIONS, [REFERENCES]).score
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    by_hand = [scorer.score(*pair)["rougeL"].fmeasure for pair in zip(REFERENCES, PREDICTIONS, strict=True)]
    assert report["rougeL"] == pytest.approx(100 * sum(by_hand) / 3)
    equal = text_report(REFERENCES, REFERENCES, ["bleu", "chrf", "rouge"])
    assert [*equal.values()] == pytest.approx([100.0] * 5)


def test_chinese_is_compared_by_characters():
    texts = ["小明有四个苹果"], ["小明有五个苹果"]
    assert text_report(*texts, ["bleu"], "zh")["bleu"] > 30 > text_report(*texts, ["bleu"])["bleu"]


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


def test_metrics_that_do_not_exist_are_named():
    with pytest.raises(UsageError, match="'blue'.*bleu, chrf, rouge"):
        text_report(["a"], ["a"], ["blue"])


def test_nothing_and_a_missing_package(monkeypatch):
    assert text_report([], []) == {}
    monkeypatch.setattr("hf_mwp.compress.metrics.text_generation.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"bleu, chrf need sacrebleu: pip install 'hf-mwp\[seq2seq\]'"):
        text_figures(["bleu", "chrf"])
