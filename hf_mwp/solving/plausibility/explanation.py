"""Why an answer was put behind another one, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from .candidate_answer import CandidateAnswer
from .features import FEATURES


MOST_COMPLAINTS = 2
LEAST_WEIGHT = 0.2
"""Share of the score by which two answers differ that a reason must have to be told."""


def violations(
    answer: CandidateAnswer, row: Sequence[float], better: Sequence[float], weights: Sequence[float]
) -> tuple[str, ...]:
    """
    Return the reasons against an answer: the features whose weights make most of the difference between its row and
    that of a better one. At most two, the heaviest first: `"2.4 人"`, `"negative length"`.
    """
    losses = [weight * (theirs - ours) for weight, theirs, ours in zip(weights, better, row, strict=True)]
    total = sum(loss for loss in losses if loss > 0)
    value = f"{float(answer.value):.6g}"
    kinds = sorted(answer.question.kinds)
    kind = {"counted": "count"}.get(kinds[0], kinds[0]) if len(kinds) == 1 else "answer"
    told: list[str] = []
    for loss, ours, theirs, feature in sorted(
        zip(losses, row, better, FEATURES, strict=True), key=lambda each: -each[0]
    ):
        if len(told) == MOST_COMPLAINTS or loss <= 0 or loss < LEAST_WEIGHT * total:
            break
        # What lets the better answer win by having it, such as a share below 1, is no fault of this one.
        if (ours > theirs) != feature.larger_is_worse:
            continue
        complaint = feature.complaint.format(value=value, unit=answer.question.unit or kind, kind=kind)
        # The value itself is shown once.
        if complaint and complaint not in told and not (value in complaint and any(value in each for each in told)):
            told.append(complaint)
    return tuple(told)
