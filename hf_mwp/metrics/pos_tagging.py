"""Word-level precision, recall and F1 of part-of-speech tagging."""

from collections import Counter
from collections.abc import Sequence
from typing import Any


def tagged_spans(labels: Sequence[str | None]) -> list[tuple[int, int, str]]:
    """
    Return the words of a sequence of `B-` and `I-` labels as tuples (first token, token after the last, tag). The
    label is `None` for tokens outside words. A word begins at each `B-`, and at an `I-` after a different tag.
    """
    spans: list[tuple[int, int, str]] = []
    previous = None
    for place, label in enumerate(labels):
        if label is None:
            previous = None
            continue
        prefix, _, tag = label.partition("-")
        if prefix == "I" and tag == previous:
            spans[-1] = (spans[-1][0], place + 1, tag)
        else:
            spans.append((place, place + 1, tag))
        previous = tag
    return spans


def pos_report(predicted: Sequence[Sequence[str | None]], gold: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """
    Compare predicted and true tags word by word. A word is correct if its boundaries and its tag are correct, as in
    table 2 of "A Compact Model for Mathematics Problem Representations Distilled from BERT" (AAAI 2025).

    Args:
        predicted (`Sequence[Sequence[str | None]]`): Labels (`"B-n"`, `"I-n"`, ...) of the tokens of each text.
        gold (`Sequence[Sequence[str | None]]`): True labels of the tokens of each text. Tokens with `None` (special
            tokens) are not counted.

    Returns:
        `dict`: `precision`, `recall` and `f1` over all words (micro average), `accuracy` of the labels, `num_words`,
        and `tags`. `tags` contains for each tag, the most frequent first, a dictionary with `precision`, `recall`,
        `f1` and `count` (number of true words).

    Example:

    ```python
    >>> report = pos_report([["B-n", "I-n", "B-v"]], [["B-n", "B-v", "B-v"]])
    >>> report["precision"], report["recall"]
    (0.5, 0.3333333333333333)
    ```
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
