"""Re-ranker of the answers of a beam, with weights of named features."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..downloads import find_beside
from ..expressions import Expression
from ..expressions.evaluation import Number
from ..problems import MathWordProblem
from ..store.files import write_whole
from .candidate_answer import CandidateAnswer, candidate_answers
from .features import FEATURE_LIST, FEATURES, feature_row
from .question import Question


# Folders of the package's own re-rankers, by language.
GENERAL = {language: Path(__file__).parent / "general" / language for language in ("en", "zh")}
# Number of reasons given against an answer, and the least share of each in the difference of two scores.
MOST_VIOLATIONS, LEAST_SHARE = 2, 0.2


class PlausibilityError(ValueError):
    """A re-ranker cannot be read, fitted or applied."""


@dataclass(frozen=True)
class RankedAnswer:
    """
    An answer in the order of a re-ranker.

    Attributes:
        value (`Fraction` or `float`): The value.
        expression ([`Expression`]): Its most probable tree, over number slots.
        log_probability (`float`), rank (`int`): Log probability of that tree, and its place in the beam, from 0.
        plausibility (`float`): Softmax of the weighted features over the values of the beam.
        violations (`tuple[str, ...]`): Reasons against it in comparison with the first answer, the heaviest first.
    """

    value: Number
    expression: Expression
    log_probability: float
    rank: int
    plausibility: float
    violations: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlausibilityReranker:
    """
    Re-ranker of the answers of a beam by a linear score over named features of value, tree and question. A solver,
    whose encoder sees no numbers, cannot know that its answer is a negative length or 2.4 people.

    It is saved with the model as `plausibility.json`, and made by [`fit_plausibility`].

    Args:
        language (`str`): Language of the problems, `"zh"` or `"en"`.
        weights (`Mapping[str, float]`): Weight of each of [`FEATURES`] by its name.
        num_beams (`int`): Beams of the fit, and default of a search.
        fitted_on (`Mapping`, *optional*): Model, data and counts of the fit.
        measured (`Mapping`, *optional*): Accuracies with and without re-ranking, by split.
        feature_list (`str`, *optional*): Version of the features.
        min_beams (`int`, *optional*): Least number of beams to re-rank; defaults to `num_beams`.

    Raises:
        PlausibilityError: the weights are for other features or not finite, or a number of beams is out of range.
    """

    language: str
    weights: Mapping[str, float]
    num_beams: int
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    feature_list: str = FEATURE_LIST
    min_beams: int | None = None

    file_name = "plausibility.json"

    def __post_init__(self) -> None:
        names = {feature.name for feature in FEATURES}
        different = sorted(names.symmetric_difference(self.weights))
        if self.feature_list != FEATURE_LIST or different:
            raise PlausibilityError(
                f"the weights are for feature list {self.feature_list!r}, but this version of hf_mwp has "
                f"{FEATURE_LIST!r} (missing or unknown: {', '.join(different) or 'none'}): fit them again with "
                "`hf-mwp rerank`"
            )
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
                raise PlausibilityError(f"the weight of {name!r} must be a finite number, not {weight!r}")
        check_fit(self.num_beams, self.min_beams)

    def check(self, language: str, num_beams: int | None = None) -> int:
        """
        Return the number of beams to search with, by default that of the fit. `PlausibilityError` for a solver in
        another language, or too few beams.
        """
        if language != self.language:
            raise PlausibilityError(
                f"the re-ranker was fitted to problems in language {self.language!r}, not in {language!r}: "
                "fit one on problems of that language with `hf-mwp rerank`"
            )
        least = self.min_beams or self.num_beams
        if num_beams is not None and num_beams < least:
            raise PlausibilityError(
                f"the re-ranker was fitted to {self.num_beams} beams and cannot rank {num_beams}: search with "
                f"num_beams={least}, or fit one with `hf-mwp rerank --num_beams {num_beams}`"
            )
        return self.num_beams if num_beams is None else num_beams

    def rerank(self, problem: MathWordProblem, trees: Sequence[tuple[Expression, float]]) -> list[RankedAnswer]:
        """
        Rank the answers of a beam, the most plausible one first.

        Args:
            problem ([`MathWordProblem`]): The problem; its equation and answer are not used.
            trees (`Sequence[tuple[Expression, float]]`): Trees over its slots and their log probabilities, best first.

        Returns:
            `list[RankedAnswer]`: one for each value; empty if no tree has one.

        Raises:
            PlausibilityError: the problem is in another language.
        """
        self.check(problem.language)
        answers = candidate_answers(Question.read(problem), trees)
        if not answers:
            return []
        rows = [feature_row(answer) for answer in answers]
        weights = [self.weights[feature.name] for feature in FEATURES]
        scores = [math.fsum(map(float.__mul__, row, map(float, weights))) for row in rows]
        top = max(scores)
        total = math.fsum(math.exp(score - top) for score in scores)
        order = sorted(range(len(answers)), key=lambda index: (-scores[index], answers[index].best.rank))
        ranked = []
        for index in order:
            answer, best = answers[index], answers[index].best
            violations = _violations(answer, rows[index], rows[order[0]], weights) if ranked else ()
            tree = (best.expression, best.log_probability, best.rank)
            ranked.append(RankedAnswer(answer.value, *tree, math.exp(scores[index] - top) / total, violations))
        return ranked

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Write `plausibility.json` to a folder, such as that of the model."""
        weights = {feature.name: round(float(self.weights[feature.name]), 4) for feature in FEATURES}
        content = {name: getattr(self, name) for name in ("feature_list", "language", "num_beams", "min_beams")}
        content |= {"weights": weights, "fitted_on": dict(self.fitted_on), "measured": dict(self.measured)}
        write_whole(Path(save_directory) / self.file_name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> PlausibilityReranker:
        """
        Read a re-ranker from a model's folder or repository; `kwargs` (`revision`, `token`, ...) go to the download.
        The package's own, `"en"` and `"zh"`, are for solvers without one.

        Raises:
            PlausibilityError: there is no re-ranker, or its file is damaged or of another version.
        """
        remedy = "fit one with `hf-mwp rerank --model FOLDER`, or use the package's own, `en` or `zh`"
        name_or_path = GENERAL.get(str(name_or_path), name_or_path)
        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            raise PlausibilityError(f"{name_or_path} has no {cls.file_name}: {remedy}")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(**content)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            known = isinstance(error, PlausibilityError)
            fault = f": {error}" if known else f" is damaged, or not a re-ranker's file ({error}): {remedy}"
            raise PlausibilityError(f"{path}{fault}") from error


def _violations(
    answer: CandidateAnswer, row: Sequence[float], better: Sequence[float], weights: Sequence[float]
) -> tuple[str, ...]:
    """Return the reasons against an answer (`"2.4 人"`): the features that contribute most to its lower score."""
    losses = [weight * (theirs - ours) for weight, theirs, ours in zip(weights, better, row, strict=True)]
    least = LEAST_SHARE * sum(loss for loss in losses if loss > 0)
    value = f"{float(answer.value):.6g}"
    kind = next(iter(answer.question.kinds)) if len(answer.question.kinds) == 1 else "answer"
    kind = "count" if kind == "counted" else kind
    told: list[str] = []
    columns = zip(losses, row, better, FEATURES, strict=True)
    for loss, ours, theirs, feature in sorted(columns, key=lambda each: -each[0]):
        if len(told) == MOST_VIOLATIONS or loss <= 0 or loss < least:
            break
        # An advantage of the better answer, such as a share below 1, is not a fault of this one.
        if (ours > theirs) != (feature.worse == "larger"):
            continue
        complaint = feature.complaint.format(value=value, unit=answer.question.unit or kind, kind=kind)
        # The value is shown once.
        if complaint and complaint not in told and not (value in complaint and any(value in each for each in told)):
            told.append(complaint)
    return tuple(told)


def check_fit(num_beams: int, min_beams: int | None = None, regularization: float = 1.0) -> None:
    """Raise `PlausibilityError` if an argument of a fit is out of range."""
    fault = None
    if type(num_beams) is not int or num_beams < 2:
        fault = f"`num_beams` must be a whole number of at least 2, not {num_beams!r}"
    elif min_beams is not None and min_beams not in range(2, num_beams + 1):
        fault = f"`min_beams` must be from 2 to {num_beams}, not {min_beams!r}"
    elif regularization <= 0:
        fault = f"`regularization` must be more than 0, not {regularization}"
    if fault is not None:
        raise PlausibilityError(fault)
