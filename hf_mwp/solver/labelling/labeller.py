"""Interface of a labeller, which proposes equations for problems."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.solving.kept_records import ProgressBar


@dataclass(frozen=True)
class Candidate:
    """An expression with number slots that may be the label of a problem, and further fields of the label's row."""

    expression: Expression
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Proposal:
    """
    Candidates for the label of a problem.

    Attributes:
        candidates (`Sequence[Candidate]`): Candidates, best first. A problem with an answer is labelled with the first
            candidate that evaluates to the answer.
        best (`int` or `None`): Index of the candidate for a problem without an answer, or `None` if there is none.
        confidence (`float` or `None`): Confidence in the candidate `best`.
        fault (`str` or `None`): Key of [`Labeller.faults`] if there is no candidate for a reason in this table.
    """

    candidates: Sequence[Candidate] = ()
    best: int | None = None
    confidence: float | None = None
    fault: str | None = None


class Labeller(ABC):
    """
    Base class of labellers. To add a labeller, write a subclass and pass an instance to [`label_problems`].

    Attributes:
        languages (`Collection[str]`): Languages of the problems that it labels.
        default_language (`str`): Language of the texts in files for which none is stated or recognised.
        labels_unanswered (`bool`): Whether it labels problems without an answer.
        faults (`Mapping[str, str]`): Outcomes of problems, in addition to [`~label_problems.FATES`], with their
            meaning.
        usage (`Mapping[str, int]`): Cost of the labels, such as numbers of tokens. Empty if it has no cost to report.
    """

    languages: Collection[str]
    default_language: str
    labels_unanswered: bool
    faults: Mapping[str, str] = {}
    usage: Mapping[str, int] = {}

    @abstractmethod
    def read(self, problems: Iterable[str | MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        """Return the problem of each text, problem or row. Raises `TypeError` for a problem that has no text."""

    @abstractmethod
    def propose(
        self, problems: Sequence[MathWordProblem], unfinished: str | Path | None = None, progress: ProgressBar = None
    ) -> list[Proposal]:
        """Return a proposal for each problem. See [`solve_problems`] for `unfinished` and `progress`."""

    @abstractmethod
    def surest(self, confidences: Sequence[float | None]) -> set[int]:
        """Return the indices of the problems without an answer to label, from the confidence in each (`None` without a
        candidate)."""

    @property
    @abstractmethod
    def training_texts(self) -> TrainingTexts:
        """Training texts of the labeller, which models trained on the labels inherit."""
