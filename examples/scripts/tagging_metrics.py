"""Metrics of named entities, as of the CoNLL-2003 shared task."""

from collections.abc import Sequence


def entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Return type, first word and end of each entity of a text with the tags `B-type`, `I-type` and `O`."""
    spans: set[tuple[str, int, int]] = set()
    name = ""
    start = 0
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, tag_name = tag.partition("-")
        if name and (prefix != "I" or tag_name != name):
            spans.add((name, start, position))
            name = ""
        if tag_name and not name:
            name = tag_name
            start = position
    return spans


def tagging_metrics(predicted: Sequence[Sequence[str]], labelled: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return precision, recall and F1 of entities, which must have the same words and type, and accuracy of tags."""
    counts = {"predicted": 0, "labelled": 0, "right": 0, "right tags": 0, "tags": 0}
    for tags, labels in zip(predicted, labelled, strict=True):
        predicted_entities = entities(tags)
        labelled_entities = entities(labels)
        counts["predicted"] += len(predicted_entities)
        counts["labelled"] += len(labelled_entities)
        counts["right"] += len(predicted_entities & labelled_entities)
        counts["right tags"] += sum(map(str.__eq__, tags, labels))
        counts["tags"] += len(labels)
    return {
        "precision": counts["right"] / max(counts["predicted"], 1),
        "recall": counts["right"] / max(counts["labelled"], 1),
        "f1": 2 * counts["right"] / max(counts["predicted"] + counts["labelled"], 1),
        "accuracy": counts["right tags"] / max(counts["tags"], 1),
    }
