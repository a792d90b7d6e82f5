"""The plausibility re-ranker: a linear model that ranks the answers in a beam."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..checked_types import checked
from ..downloads import find_beside, missing_folder
from ..expressions import Expression
from ..expressions.evaluation import Number
from ..problems import MathWordProblem
from ..store.files import write_json
from ..usage_error import UsageError
from .candidate_answer import CandidateAnswer, candidate_answers
from .features import FEATURE_LIST, FEATURES, feature_row
from .question import Question


# Folders of the re-rankers included in the package, by language.
GENERAL = {language: Path(__file__).parent / "general" / language for language in ("en", "zh")}
# Maximum number of reasons against an answer, and minimum share of each in the difference between two scores.
MOST_VIOLATIONS, LEAST_SHARE = 2, 0.2


class PlausibilityError(UsageError):
    """Error raised if a re-ranker cannot be loaded, fitted or applied."""


@dataclass(frozen=True)
class RankedAnswer:
    """An answer ranked by a re-ranker."""

    value: Number
    expression: Expression  # most probable tree with this value, over number slots
    log_probability: float  # of this tree
    rank: int  # of this tree in the beam, from 0
    plausibility: float  # softmax over the values in the beam of their weighted sums of features
    violations: tuple[str, ...] = ()  # reasons against it compared with the first answer, most important first


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
            if not isinstance(weight, int | float) or not math.isfinite(weight):
                raise PlausibilityError(f"the weight of {name!r} must be a finite number, not {weight!r}")
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
        Rank the answers in a beam, most plausible first.

        Args:
            problem ([`MathWordProblem`]): The problem. Its equation and answer are not used.
            trees (`Sequence[tuple[Expression, float]]`): Trees over number slots with log probabilities, best first.

        Returns:
            `list[RankedAnswer]`: An answer for each different value; empty if no tree has a value.

        Raises:
            PlausibilityError: If the language of the problem differs from the language of the re-ranker.
        """
        self.check(problem.language)
        answers = candidate_answers(Question.read(problem), trees) if trees else []  # the text may be too long
        if not answers:
            return []
        rows = [feature_row(answer) for answer in answers]
        weights = [self.weights[feature.name] for feature in FEATURES]
        scores = [math.fsum(map(float.__mul__, row, map(float, weights))) for row in rows]
        top = max(scores)
        total = math.fsum(math.exp(score - top) for score in scores)
        judged = sorted(zip(answers, rows, scores, strict=True), key=lambda each: (-each[2], each[0].best.rank))
        ranked = []
        for answer, row, score in judged:
            violations = _violations(answer, row, judged[0][1], weights) if ranked else ()
            ranked.append(RankedAnswer(answer.value, *answer.best, math.exp(score - top) / total, violations))
        return ranked

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Save the re-ranker as `plausibility.json` in a folder, such as the model folder."""
        weights = {feature.name: round(float(self.weights[feature.name]), 4) for feature in FEATURES}
        content = {name: getattr(self, name) for name in ("feature_list", "language", "num_beams", "min_beams")}
        content |= {"weights": weights, "fitted_on": dict(self.fitted_on), "measured": dict(self.measured)}
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
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            known = isinstance(error, PlausibilityError)
            fault = f": {error}" if known else f" is damaged, or not the file of a re-ranker ({error}). {remedy}"
            raise PlausibilityError(f"{path}{fault}") from error


def _violations(
    answer: CandidateAnswer, row: Sequence[float], better: Sequence[float], weights: Sequence[float]
) -> tuple[str, ...]:
    """Return the reasons against an answer (`"2.4 人"`): the features that lower its score most."""
    losses = [weight * (theirs - ours) for weight, theirs, ours in zip(weights, better, row, strict=True)]
    least = LEAST_SHARE * sum(loss for loss in losses if loss > 0)
    value = f"{float(answer.value):.6g}"
    kind = next(iter(answer.question.kinds)) if len(answer.question.kinds) == 1 else "answer"
    kind = kind.replace("counted", "count")
    found: list[str] = []
    columns = zip(losses, row, better, FEATURES, strict=True)
    for loss, ours, theirs, feature in sorted(columns, key=lambda each: -each[0]):
        if len(found) == MOST_VIOLATIONS or loss <= 0 or loss < least:
            break
        # Skip features that speak for the better answer instead of against this answer.
        if (ours > theirs) != (feature.worse == "larger"):
            continue
        complaint = feature.complaint.format(value=value, unit=answer.question.unit or kind, kind=kind)
        # At most one reason shows the value.
        if complaint and complaint not in found and not (value in complaint and any(value in each for each in found)):
            found.append(complaint)
    return tuple(found)


def check_fit(num_beams: int, min_beams: int | None = None, regularization: float = 1.0) -> None:
    """Raise `PlausibilityError` if an argument of fitting is out of range."""
    if num_beams < 2 or min_beams not in (None, *range(2, num_beams + 1)):
        given = f"not {num_beams} and {min_beams}"
        raise PlausibilityError(f"`num_beams` must be at least 2, and `min_beams` from 2 to `num_beams`, {given}")
    if regularization <= 0:
        raise PlausibilityError(f"`regularization` must be greater than 0, not {regularization}")
