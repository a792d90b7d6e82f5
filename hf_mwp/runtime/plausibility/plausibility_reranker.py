"""The plausibility re-ranker: a linear model that ranks the answers in a beam."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.expressions.evaluation import Number
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import find_beside, missing_folder
from hf_mwp.utils.files import write_json
from hf_mwp.utils.json_fields import (
    OBJECT,
    TEXT,
    check_fields,
    choice,
    integer,
    number,
    object_of,
    optional,
    read_mapping,
)
from hf_mwp.utils.usage_error import UsageError

from .candidate_answer import CandidateAnswer
from .features import FEATURE_LIST, FEATURES, DescribedAnswer, describe_answers
from .violations import MOST_VIOLATIONS, NEGATIVE, complaint_of, faults_of, violations_of


# Folders of the re-rankers included in the package, by language.
GENERAL = {language: Path(__file__).parent / "general" / language for language in ("en", "zh")}
# Maximum number of beams and size of a weight in a file, far above all that were fitted.
MAX_BEAMS = 1_000
MAX_WEIGHT = 1_000_000
# Fields of the file.
RERANKER = {
    "language": choice("zh", "en"),
    "weights": object_of(number(-MAX_WEIGHT, MAX_WEIGHT)),
    "num_beams": integer(2, MAX_BEAMS),
    "fitted_on": optional(OBJECT, default={}),
    "measured": optional(OBJECT, default={}),
    "feature_list": TEXT,
    "min_beams": optional(integer(2, MAX_BEAMS)),
    "confidence": optional(object_of(number(-MAX_WEIGHT, MAX_WEIGHT))),
}
# Factor of the plausibility of an impossible answer, which would be near 1 if the beam has no other.
IMPOSSIBLE_FACTOR = 0.1
# Terms of `PlausibilityReranker.confidence` besides the features, and the range of its log odds.
CONSTANT_TERM = "constant"
SHARE_TERM = "share"
MAX_LOG_ODDS = 20.0


class PlausibilityError(UsageError):
    """Error raised if a re-ranker cannot be loaded, fitted or applied."""


@dataclass(frozen=True)
class RankedAnswer:
    """An answer ranked by a re-ranker."""

    value: Number  # rounded if `rounding` is set
    expression: Expression  # most probable tree with this value, over number slots
    log_probability: float  # of this tree
    rank: int  # of this tree in the beam, from 0
    # Probability of the answer: the softmax over the values in the beam of their weighted sums of features, a tenth of
    # it for an impossible answer, or the confidence computed from it.
    plausibility: float
    # Reasons against it, most important first: faults of its own for the first answer and impossible ones, then
    # comparisons with the first answer.
    violations: tuple[str, ...] = ()
    # "up" or "down" if the value is a quotient that was rounded to whole things (50 children need 9 boats for 6 each),
    # "remainder" if it is what is left over.
    # The features are those of the quotient, which seldom is the answer to any other question.
    rounding: str | None = None


@checked
@dataclass(frozen=True)
class PlausibilityReranker:
    """
    Re-ranker for the answers in a beam: a linear model over features of the value, tree and question. A solver, whose
    input has placeholders instead of numbers, cannot avoid answers such as a negative length or 2.4 people.

    It is fitted by [`fit_reranker`] or [`fit_plausibility`], and saved beside the model as `plausibility.json`.

    Args:
        language (`str`): Language of the problems, `"zh"` or `"en"`.
        weights (`Mapping[str, float]`): Weights by feature name ([`FEATURES`]).
        num_beams (`int`): Number of beams used for fitting, and default for a search.
        fitted_on (`Mapping`, *optional*): Information on the fit: model, data and numbers of problems.
        measured (`Mapping`, *optional*): Accuracies with and without re-ranking, by split.
        feature_list (`str`, *optional*): Version of the features.
        min_beams (`int`, *optional*): Minimum number of beams for re-ranking. Defaults to `num_beams`.
        confidence (`Mapping[str, float]`, *optional*): Weights of a logistic regression for the probability that the
            first answer is right, from its softmax (`share`, as log odds), its features, and a `constant`. Without
            it, the plausibility is the softmax.

    Raises:
        PlausibilityError: If the weights belong to a different version of the features or are not finite, or if a
            number of beams is out of range.
    """

    language: str
    weights: Mapping[str, float]
    num_beams: int
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    feature_list: str = FEATURE_LIST
    min_beams: int | None = None
    confidence: Mapping[str, float] | None = None

    file_name = "plausibility.json"

    def __post_init__(self) -> None:
        names = {feature.name for feature in FEATURES}
        different = sorted(names.symmetric_difference(self.weights))
        if self.feature_list != FEATURE_LIST or different:
            raise PlausibilityError(
                f"the weights belong to feature list {self.feature_list!r}, but this version of hf_mwp has feature "
                f"list {FEATURE_LIST!r} (missing or unknown: {', '.join(different) or 'none'}). Fit the re-ranker "
                "again with `hf-mwp rerank`"
            )
        for name, weight in self.weights.items():
            if not isinstance(weight, int | float) or not abs(weight) <= MAX_WEIGHT:
                fault = f"must be a finite number of at most {MAX_WEIGHT:,}, not {weight!r}"
                raise PlausibilityError(f"the weight of {name!r} {fault}")
        unknown = sorted(set(self.confidence or ()) - names - {CONSTANT_TERM, SHARE_TERM})
        if unknown:
            raise PlausibilityError(f"`confidence` has unknown terms: {', '.join(unknown)}")
        check_fit(self.num_beams, self.min_beams)

    def check(self, language: str, num_beams: int | None = None) -> int:
        """Return the number of beams to search: `num_beams`, by default the number used for fitting. Raises
        `PlausibilityError` if the language of the solver differs or `num_beams` is too small."""
        if language != self.language:
            raise PlausibilityError(
                f"the re-ranker was fitted on problems in the language {self.language!r}, not {language!r}. Fit a "
                "re-ranker on problems in this language with `hf-mwp rerank`"
            )
        least = self.min_beams or self.num_beams
        if num_beams is not None and num_beams < least:
            raise PlausibilityError(
                f"the re-ranker was fitted with {self.num_beams} beams and cannot rank {num_beams}. Use "
                f"num_beams={least}, or fit a re-ranker with `hf-mwp rerank --num_beams {num_beams}`"
            )
        return self.num_beams if num_beams is None else num_beams

    def rerank(self, problem: MathWordProblem, trees: Sequence[tuple[Expression, float]]) -> list[RankedAnswer]:
        """
        Rank the answers in a beam, highest weighted sum first. Negative counts and measures are impossible, unless the
        text or the question suggests otherwise (temperatures, debts, differences). They keep their rank, since a
        problem may have no better answer, but have a violation and a tenth of their plausibility. A re-ranker whose
        weight of `negative` is 0 or positive does not apply this rule.

        Args:
            problem ([`MathWordProblem`]): The problem. Its equation and answer are not used.
            trees (`Sequence[tuple[Expression, float]]`): Trees over number slots with log probabilities, best first.

        Returns:
            `list[RankedAnswer]`: An answer for each different value; empty if no tree has a value.

        Raises:
            PlausibilityError: If the language of the problem differs from the language of the re-ranker.
        """
        self.check(problem.language)
        return self.rank(describe_answers(problem, trees))

    def rank(self, answers: Sequence[DescribedAnswer]) -> list[RankedAnswer]:
        """Rank the answers of [`describe_answers`] as [`~PlausibilityReranker.rerank`] does."""
        if not answers:
            return []
        weights = [float(self.weights[feature.name]) for feature in FEATURES]
        scores = [math.fsum(map(operator.mul, described.features, weights)) for described in answers]
        highest = max(scores)
        total = math.fsum(math.exp(score - highest) for score in scores)
        order = sorted(range(len(answers)), key=lambda index: (-scores[index], answers[index].answer.best.rank))
        best_features = answers[order[0]].features
        ranked = []
        for index in order:
            answer, features = answers[index]
            plausibility = math.exp(scores[index] - highest) / total
            if ranked:
                violations = violations_of(answer, features, best_features, weights)
            else:
                violations = faults_of(answer, features, weights)
            if self._is_impossible(answer):
                complaint = complaint_of(NEGATIVE, answer)
                violations = [complaint, *(violation for violation in violations if violation != complaint)]
                plausibility *= IMPOSSIBLE_FACTOR
            if self.confidence:
                plausibility = self._confidence(plausibility, features)
                if ranked:
                    # The first answer is the most plausible one.
                    plausibility = min(plausibility, ranked[0].plausibility)
            if answer.rounding is not None:
                # They are about the quotient.
                violations = []
            violations = tuple(violations[:MOST_VIOLATIONS])
            ranked.append(RankedAnswer(answer.rounded_value, *answer.best, plausibility, violations, answer.rounding))
        return ranked

    def _confidence(self, share: float, row: Sequence[float]) -> float:
        """Return the probability that an answer with this softmax and these features is right."""
        terms = confidence_terms(share, row)
        log_odds = math.fsum(weight * terms[name] for name, weight in self.confidence.items())
        log_odds = min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)
        return 1 / (1 + math.exp(-log_odds))

    def _is_impossible(self, answer: CandidateAnswer) -> bool:
        return answer.value < 0 and not answer.question.may_be_negative and self.weights["negative"] < 0

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Save the re-ranker as `plausibility.json` in a folder, such as the model folder."""
        weights = {feature.name: round(float(self.weights[feature.name]), 4) for feature in FEATURES}
        content = {
            "feature_list": self.feature_list,
            "language": self.language,
            "num_beams": self.num_beams,
            "min_beams": self.min_beams,
            "weights": weights,
            "fitted_on": dict(self.fitted_on),
            "measured": dict(self.measured),
        }
        if self.confidence:
            content["confidence"] = {name: round(float(weight), 4) for name, weight in self.confidence.items()}
        write_json(Path(save_directory) / self.file_name, content)

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> PlausibilityReranker:
        """
        Load a re-ranker from a model folder or Hub repository. `kwargs` (`revision`, `token`, ...) are passed to the
        download. `"en"` and `"zh"` load the re-rankers included in the package, for solvers without a re-ranker.

        Raises:
            PlausibilityError: If there is no re-ranker, or its file is damaged or has a different version.
        """
        remedy = "Fit a re-ranker with `hf-mwp rerank --model FOLDER`, or use `en` or `zh`, included in the package"
        name_or_path = GENERAL.get(str(name_or_path), name_or_path)
        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            raise PlausibilityError(missing_folder(name_or_path) or f"{name_or_path} has no {cls.file_name}. {remedy}")
        try:
            fields = check_fields(read_mapping(path), RERANKER, path, closed=True)
        except UsageError as error:
            raise PlausibilityError(f"{error} {remedy}.") from error
        try:
            return cls(**fields)
        except PlausibilityError as error:
            raise PlausibilityError(f"{path}: {error}") from error


def confidence_terms(share: float, row: Sequence[float]) -> dict[str, float]:
    """Return the terms of the log odds that an answer is right, by name: its softmax `share` as log odds, its features
    and a constant."""
    terms = {CONSTANT_TERM: 1.0}
    log_odds = MAX_LOG_ODDS
    if share <= 0:
        log_odds = -MAX_LOG_ODDS
    elif share < 1:
        log_odds = min(max(math.log(share / (1 - share)), -MAX_LOG_ODDS), MAX_LOG_ODDS)
    terms[SHARE_TERM] = log_odds
    for feature, value in zip(FEATURES, row, strict=True):
        terms[feature.name] = value
    return terms


def check_fit(num_beams: int, min_beams: int | None = None, regularization: float = 1.0) -> None:
    """Raise `PlausibilityError` if an argument of fitting is out of range."""
    least = 2 if min_beams is None else min_beams
    if not 2 <= least <= num_beams:
        raise PlausibilityError(
            f"`num_beams` must be at least 2, and `min_beams` from 2 to `num_beams`, not {num_beams} and {min_beams}"
        )
    if regularization <= 0:
        raise PlausibilityError(f"`regularization` must be greater than 0, not {regularization}")
