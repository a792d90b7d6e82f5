"""Reasons against answers: the features that lower their scores, in words."""

from collections.abc import Sequence

from .candidate_answer import CandidateAnswer
from .features import FEATURES, Feature


# Maximum number of reasons against an answer, and minimum share of each in the difference between two scores.
MOST_VIOLATIONS = 2
LEAST_SHARE = 0.2
NEGATIVE = next(feature for feature in FEATURES if feature.name == "negative")
# Features that are named as reasons against the first answer, too. Of 832 answers that the published Chinese solver
# chose for problems of Ape210k and Math23k, at most a quarter of those with one of these features were right (of all:
# 56 %). Negative answers have a rule of their own.
FAULTS = (
    *("zero", "not_whole_counted", "not_whole_days", "money_decimals", "share_above_one", "share_one", "in_text_used"),
    *("negative_step", "zero_step", "shares_added", "unused_ratios", "by_one"),
)
# In "How much does it cost?", feature list 3 reads the verb as a unit, which is not shown.
MISREAD_UNITS = ("doe", "did", "will", "would", "can", "could", "should", "are", "was", "were", "ha", "have", "had")


def faults_of(answer: CandidateAnswer, row: Sequence[float], weights: Sequence[float]) -> list[str]:
    """Return the faults of an answer that do not depend on other answers, heaviest first."""
    faults = []
    if answer.question.unit in MISREAD_UNITS:
        return faults
    for feature, value, weight in zip(FEATURES, row, weights, strict=True):
        if feature.name in FAULTS and value > 0 and weight < 0:
            faults.append((weight * value, complaint_of(feature, answer)))
    complaints = [complaint for _, complaint in sorted(faults)]
    return list(dict.fromkeys(complaints))


def violations_of(
    answer: CandidateAnswer, row: Sequence[float], best_row: Sequence[float], weights: Sequence[float]
) -> list[str]:
    """Return the reasons against an answer (`"2.4 人"`): the features that lower its score most."""
    losses = [weight * (best - value) for weight, best, value in zip(weights, best_row, row, strict=True)]
    least = LEAST_SHARE * sum(loss for loss in losses if loss > 0)
    shown_value = _shown_value(answer)
    complaints = []
    for index in sorted(range(len(losses)), key=lambda index: -losses[index]):
        loss = losses[index]
        if len(complaints) == MOST_VIOLATIONS or loss <= 0 or loss < least:
            break
        # Skip features that speak for the best answer instead of against this answer.
        feature = FEATURES[index]
        is_larger = row[index] > best_row[index]
        if is_larger != (feature.worse == "larger"):
            continue
        complaint = complaint_of(feature, answer)
        # At most one reason shows the value.
        repeats_value = shown_value in complaint and shown_value in "\n".join(complaints)
        if complaint and complaint not in complaints and not repeats_value:
            complaints.append(complaint)
    return complaints


def complaint_of(feature: Feature, answer: CandidateAnswer) -> str:
    """Return the reason against an answer that a feature is, empty if it is none."""
    answer_kind = "answer"
    if len(answer.question.kinds) == 1:
        (answer_kind,) = answer.question.kinds
    answer_kind = answer_kind.replace("counted", "count")
    unit = answer.question.unit or answer_kind
    if unit in MISREAD_UNITS:
        unit = "answer"
    return feature.complaint.format(value=_shown_value(answer), unit=unit, kind=answer_kind)


def _shown_value(answer: CandidateAnswer) -> str:
    return f"{float(answer.value):.6g}"
