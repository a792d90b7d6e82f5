"""Metrics of pretraining: losses and accuracies over tokens, and precision, recall and F1 of tagged words."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from hf_mwp.solver.corpus.pretraining_encoder import KEYWORD, NUMBER
from hf_mwp.utils.checked_types import checked


# For each mean over tokens, the names of the sum and of the number of tokens.
MEANS = {
    "mlm_loss": ("mlm_loss", "mlm_count"),
    "mlm_accuracy": ("mlm_right", "mlm_count"),
    "mlm_loss_keywords": ("keyword_loss", "keyword_count"),
    "mlm_loss_numbers": ("number_loss", "number_count"),
    "pos_loss": ("pos_loss", "pos_count"),
}
# Names of all sums over the tokens of a text.
STATISTICS = tuple(dict.fromkeys(chain.from_iterable(MEANS.values())))


def masking_statistics(logits: torch.Tensor, labels: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the sums in `STATISTICS` over the masked tokens of each text (all, keywords, numbers), of shape
    `(batch,)`. `logits` are `(batch, length, vocabulary)` or `(labelled tokens, vocabulary)`, `labels` (-100 for other
    tokens) and `classes` (`mask_class`) `(batch, length)`."""
    labelled = labels.ne(-100)
    if logits.dim() == 3:
        logits = logits[labelled]
    text_indices = labelled.nonzero()[:, 0]
    token_labels = labels[labelled]
    token_classes = classes[labelled]
    losses = cross_entropy(logits.float(), token_labels, reduction="none")
    token_values = {"mlm_right": logits.argmax(-1).eq(token_labels).float()}
    masks = {
        "mlm": torch.ones_like(token_labels, dtype=torch.bool),
        "keyword": token_classes.eq(KEYWORD),
        "number": token_classes.eq(NUMBER),
    }
    for name, mask in masks.items():
        token_values[f"{name}_loss"] = losses * mask
        token_values[f"{name}_count"] = mask.float()
    # Sum the tokens of each text.
    zeros = losses.new_zeros(len(labels))
    return {name: zeros.index_add(0, text_indices, values) for name, values in token_values.items()}


def tagging_statistics(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the summed loss and the number of tagged tokens of each text from `logits` `(batch, length, labels)`."""
    losses = cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    return {"pos_loss": losses.sum(1), "pos_count": labels.ne(-100).sum(1).float()}


def summarise_statistics(sums: np.ndarray) -> dict[str, float]:
    """Compute the `MEANS` from sums of shape `(texts, len(STATISTICS))`. Means over no tokens are left out."""
    totals = sums.astype(np.float64).sum(axis=0).tolist()
    total = dict(zip(STATISTICS, totals, strict=True))
    means = {}
    for name, (statistic, num_tokens) in MEANS.items():
        if total[num_tokens]:
            means[name] = total[statistic] / total[num_tokens]
    return means


def tagging_report(predicted: np.ndarray, gold: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Compute [`metrics.pos_report`] of label ids `(texts, tokens)`. `gold` is -100 for tokens outside words."""
    names = np.array([*labels, None], dtype=object)
    is_outside = gold == -100
    predicted_names = names[np.where(is_outside, len(labels), predicted)]
    gold_names = names[np.where(is_outside, len(labels), gold)]
    return pos_report(predicted_names.tolist(), gold_names.tolist())


def tagged_spans(labels: Sequence[str | None]) -> list[tuple[int, int, str]]:
    """Return the words in `B-` and `I-` labels (`None` outside words) as (first token, token after the last, tag)."""
    spans: list[tuple[int, int, str]] = []
    previous = None
    for index, label in enumerate(labels):
        if label is None:
            previous = None
            continue
        prefix, _, tag = label.partition("-")
        # A word begins at each `B-`, and at an `I-` after a different tag.
        if prefix == "I" and tag == previous:
            spans[-1] = (spans[-1][0], index + 1, tag)
        else:
            spans.append((index, index + 1, tag))
        previous = tag
    return spans


@checked
def pos_report(predicted: Sequence[Sequence[str | None]], gold: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """
    Compare predicted and true labels (`"B-n"`, `"I-n"`, ...) word by word. A word is correct if its boundaries and its
    tag are correct, as in table 2 of "A Compact Model for Mathematics Problem Representations Distilled from BERT"
    (AAAI 2025). Tokens with the true label `None` (special tokens) are not counted. `precision`, `recall` and `f1` are
    computed over all words, and in `tags` over those of each tag, the most frequent first; `accuracy` over labels.
    """
    predicted_words: Counter[str] = Counter()
    gold_words: Counter[str] = Counter()
    correct_words: Counter[str] = Counter()
    num_labels = 0
    num_correct_labels = 0
    for predicted_labels, gold_labels in zip(predicted, gold, strict=True):
        counted_labels = []
        for predicted_label, gold_label in zip(predicted_labels, gold_labels, strict=True):
            if gold_label is None:
                counted_labels.append(None)
                continue
            counted_labels.append(predicted_label)
            num_labels += 1
            num_correct_labels += predicted_label == gold_label
        predicted_spans = tagged_spans(counted_labels)
        gold_spans = tagged_spans(gold_labels)
        predicted_words.update(tag for _, _, tag in predicted_spans)
        gold_words.update(tag for _, _, tag in gold_spans)
        correct_words.update(tag for _, _, tag in set(predicted_spans) & set(gold_spans))
    report: dict[str, Any] = _scores(correct_words.total(), predicted_words.total(), gold_words.total())
    report["accuracy"] = num_correct_labels / num_labels if num_labels else 0.0
    report["num_words"] = gold_words.total()
    report["tags"] = {}
    for tag in sorted({*predicted_words, *gold_words}, key=lambda tag: (-gold_words[tag], tag)):
        scores = _scores(correct_words[tag], predicted_words[tag], gold_words[tag])
        report["tags"][tag] = {**scores, "count": gold_words[tag]}
    return report


def _scores(num_correct: int, num_predicted: int, num_gold: int) -> dict[str, float]:
    """Return precision, recall and F1, which are 0 without words."""
    total = num_predicted + num_gold
    return {
        "precision": num_correct / num_predicted if num_predicted else 0.0,
        "recall": num_correct / num_gold if num_gold else 0.0,
        "f1": 2 * num_correct / total if total else 0.0,
    }
