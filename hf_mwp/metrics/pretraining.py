"""Metrics of pretraining: losses and accuracies over tokens, and precision, recall and F1 of tagged words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..checked_types import checked
from ..data.corpus.pretraining_encoder import KEYWORD, NUMBER


# For each mean over tokens, the names of the sum and of the number of tokens.
MEANS = {
    "mlm_loss": ("mlm_loss", "mlm_count"),
    "mlm_accuracy": ("mlm_right", "mlm_count"),
    "mlm_loss_keywords": ("keyword_loss", "keyword_count"),
    "mlm_loss_numbers": ("number_loss", "number_count"),
    "pos_loss": ("pos_loss", "pos_count"),
}
# Names of all sums over the tokens of a text.
STATISTICS = tuple(dict.fromkeys(name for pair in MEANS.values() for name in pair))


def masking_statistics(logits: torch.Tensor, labels: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the sums in `STATISTICS` over the masked tokens of each text (all, keywords, numbers), of shape
    `(batch,)`. `logits` are `(batch, length, vocabulary)` or `(labelled tokens, vocabulary)`, `labels` (-100 for other
    tokens) and `classes` (`mask_class`) `(batch, length)`."""
    labelled = labels.ne(-100)
    if logits.dim() == 3:
        logits = logits[labelled]
    rows, gold, kinds = labelled.nonzero()[:, 0], labels[labelled], classes[labelled]
    losses = cross_entropy(logits.float(), gold, reduction="none")
    values = {"mlm_right": logits.argmax(-1).eq(gold).float()}
    for name, counted in {"mlm": gold.ge(0), "keyword": kinds.eq(KEYWORD), "number": kinds.eq(NUMBER)}.items():
        values |= {f"{name}_loss": losses * counted, f"{name}_count": counted.float()}
    empty = losses.new_zeros(len(labels))
    return {name: empty.index_add(0, rows, value) for name, value in values.items()}


def tagging_statistics(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the summed loss and the number of tagged tokens of each text from `logits` `(batch, length, labels)`."""
    losses = cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    return {"pos_loss": losses.sum(1), "pos_count": labels.ne(-100).sum(1).float()}


def summarise_statistics(sums: np.ndarray) -> dict[str, float]:
    """Compute the `MEANS` from sums of shape `(texts, len(STATISTICS))`. Means over no tokens are left out."""
    total = dict(zip(STATISTICS, sums.astype(np.float64).sum(axis=0).tolist(), strict=True))
    return {name: total[value] / total[count] for name, (value, count) in MEANS.items() if total[count]}


def tagging_report(predicted: np.ndarray, gold: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Compute [`metrics.pos_report`] of label ids `(texts, tokens)`. `gold` is -100 for tokens outside words."""
    names = np.array([*labels, None], dtype=object)
    ids = (np.where(gold == -100, len(labels), each) for each in (predicted, gold))
    return pos_report(*(names[each].tolist() for each in ids))


def tagged_spans(labels: Sequence[str | None]) -> list[tuple[int, int, str]]:
    """Return the words in `B-` and `I-` labels (`None` outside words) as (first token, token after the last, tag)."""
    spans: list[tuple[int, int, str]] = []
    previous = None
    for place, label in enumerate(labels):
        prefix, _, tag = (label or "").partition("-")
        # A word begins at each `B-`, and at an `I-` after a different tag.
        if prefix == "I" and tag == previous:
            spans[-1] = (spans[-1][0], place + 1, tag)
        elif label is not None:
            spans.append((place, place + 1, tag))
        previous = None if label is None else tag
    return spans


@checked
def pos_report(predicted: Sequence[Sequence[str | None]], gold: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """
    Compare predicted and true labels (`"B-n"`, `"I-n"`, ...) word by word. A word is correct if its boundaries and its
    tag are correct, as in table 2 of "A Compact Model for Mathematics Problem Representations Distilled from BERT"
    (AAAI 2025). Tokens with the true label `None` (special tokens) are not counted. `precision`, `recall` and `f1` are
    computed over all words, and in `tags` over those of each tag, the most frequent first; `accuracy` over labels.
    """
    found, true, right = Counter(), Counter(), Counter()
    labels = equal = 0
    for ours, theirs in zip(predicted, gold, strict=True):
        ours = [None if label is None else guess for guess, label in zip(ours, theirs, strict=True)]
        pairs = [(guess, label) for guess, label in zip(ours, theirs, strict=True) if label is not None]
        labels += len(pairs)
        equal += sum(guess == label for guess, label in pairs)
        predicted_spans, gold_spans = tagged_spans(ours), tagged_spans(theirs)
        found.update(tag for _, _, tag in predicted_spans)
        true.update(tag for _, _, tag in gold_spans)
        right.update(tag for _, _, tag in set(predicted_spans) & set(gold_spans))
    report: dict[str, Any] = _figures(right.total(), found.total(), true.total())
    report["accuracy"] = equal / labels if labels else 0.0
    report["num_words"] = true.total()
    order = sorted({*found, *true}, key=lambda tag: (-true[tag], tag))
    report["tags"] = {tag: {**_figures(right[tag], found[tag], true[tag]), "count": true[tag]} for tag in order}
    return report


def _figures(right: int, found: int, true: int) -> dict[str, float]:
    return {
        "precision": right / found if found else 0.0,
        "recall": right / true if true else 0.0,
        "f1": 2 * right / (found + true) if found + true else 0.0,
    }
