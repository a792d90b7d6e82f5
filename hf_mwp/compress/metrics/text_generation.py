"""Metrics of text generation: BLEU, chrF and ROUGE."""

import re
from collections.abc import Sequence
from importlib.util import find_spec

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError


PACKAGES = {"bleu": "sacrebleu", "chrf": "sacrebleu", "rouge": "rouge_score"}
ROUGE = ("rouge1", "rouge2", "rougeL")
# Chinese and Japanese characters, or words of other letters.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)+")


@checked
def text_figures(metrics: Sequence[str]) -> list[str]:
    """Return the keys of [`text_report`] for the given metrics. Raises `UsageError` if a package is not installed."""
    unknown = {*metrics} - PACKAGES.keys()
    if unknown:
        raise UsageError(f"Unknown metrics {sorted(unknown)}. Choose from {', '.join(PACKAGES)}.")
    packages = {PACKAGES[name] for name in metrics}
    for package in sorted(packages):
        if find_spec(package) is None:
            raise UsageError(f"The metrics {', '.join(metrics)} need {package}: pip install 'hf-mwp[seq2seq]'.")
    keys = []
    for name in metrics:
        if name == "rouge":
            keys += ROUGE
        else:
            keys.append(name)
    return keys


class Words:
    """Tokenizer of rouge-score for texts in other scripts than the Latin one."""

    def tokenize(self, text: str) -> list[str]:
        """Return the lower-case words, and single Chinese and Japanese characters."""
        return WORD.findall(text.lower())


@checked
def text_report(
    predictions: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu", "chrf"),
    language: str | None = None,
) -> dict[str, float]:
    """
    Compare generated texts with references.

    Args:
        predictions (`Sequence[str]`), references (`Sequence[str]`): Generated texts, and one reference for each.
        metrics (`Sequence[str]`, *optional*, defaults to `("bleu", "chrf")`): `"bleu"` and `"chrf"` (corpus scores of
            sacrebleu) and `"rouge"` (mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L with English stemming, rouge-score; in
            other scripts than the Latin one, of words or of Chinese and Japanese characters).
        language (`str`, *optional*): Language of the texts. With `"zh"`, BLEU compares characters.

    Returns:
        `dict[str, float]`: those of `bleu`, `chrf`, `rouge1`, `rouge2` and `rougeL` that `metrics` selects, from 0 to
        100. The dictionary is empty if there are no texts.

    Example:

    ```python
    >>> text_report(["a dog runs on the grass"], ["a dog runs on green grass"])
    {'bleu': 53.728..., 'chrf': 57.894...}
    ```
    """
    text_figures(metrics)
    if len(predictions) != len(references):
        counts = f"{len(predictions)} texts and {len(references)} references"
        raise ValueError(f"Pass one reference for each text, got {counts}.")
    report = {}
    if not references:
        return report
    if "bleu" in metrics or "chrf" in metrics:
        from sacrebleu.metrics import BLEU, CHRF

        tokenizer = "zh" if language == "zh" else None
        scorers = {"bleu": BLEU(tokenize=tokenizer), "chrf": CHRF()}
        for name, scorer in scorers.items():
            if name in metrics:
                report[name] = scorer.corpus_score(list(predictions), [list(references)]).score
    if "rouge" in metrics:
        from rouge_score.rouge_scorer import RougeScorer

        # The tokenizer of rouge-score removes all characters but a to z and digits.
        tokenizer = None if _is_latin(references) else Words()
        scorer = RougeScorer(ROUGE, use_stemmer=True, tokenizer=tokenizer)
        scores = list(map(scorer.score, references, predictions))
        for name in ROUGE:
            report[name] = 100 * sum(score[name].fmeasure for score in scores) / len(scores)
    return report


def _is_latin(texts: Sequence[str]) -> bool:
    """Return whether at least half of the letters in the texts are ASCII letters."""
    letters = list(filter(str.isalpha, "".join(texts)))
    return 2 * sum(map(str.isascii, letters)) >= len(letters)
