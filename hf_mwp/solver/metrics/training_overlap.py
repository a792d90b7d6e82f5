"""Separate accuracies for problems that are in the training texts of a model and for new problems."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.provenance import training_texts_of

from .accuracy import PredictionScore, accuracy_report


class TrainingOverlap:
    """Overlap of problems with the training texts of a model, or of the dataset's training split (`part`) if they are
    unknown. [`~problems.text_keys.TextKeys`] compares without spaces, punctuation, case and the form of numerals."""

    @checked
    def __init__(self, texts: TrainingTexts | None, part: Iterable[str] | None = None) -> None:
        self.texts = texts
        self.known = texts is not None
        self.data = "training data" if self.known else "training split"
        if texts is None and part is not None:
            self.texts = TrainingTexts.from_texts(part)

    @classmethod
    def of(cls, model: Any, part: Iterable[str] | None = None) -> Self:
        """Create a `TrainingOverlap` for a trained or loaded model."""
        return cls(training_texts_of(model), part)

    def flags(self, text: str) -> dict[str, bool | None]:
        """Return whether the exact text and the masked text are in the training texts (`None` if this is unknown)."""
        exact = masked = None
        if self.texts is not None:
            exact, masked = self.texts.seen(text)
        data = self.data.replace(" ", "_")
        return {f"exact_text_in_{data}": exact, f"masked_text_in_{data}": masked}

    def groups(self, problems: Sequence[MathWordProblem | str]) -> dict[str, list[int]]:
        """Return the row numbers of all problems, and of new and known ones if there are texts to compare with."""
        groups: dict[str, list[int]] = {"all problems": list(range(len(problems)))}
        if self.texts is None:
            return groups
        new_masked: list[int] = []
        new_exact: list[int] = []
        known_exact: list[int] = []
        for row, problem in enumerate(problems):
            exact, masked = self.texts.seen(_text(problem))
            if not masked:
                new_masked.append(row)
            if exact:
                known_exact.append(row)
            else:
                new_exact.append(row)
        groups[f"masked text not in {self.data}"] = new_masked
        groups[f"exact text not in {self.data}"] = new_exact
        groups[f"exact text in {self.data}"] = known_exact
        return groups

    def reports(self, problems: Sequence[MathWordProblem], scores: Sequence[PredictionScore]) -> dict[str, dict]:
        """Return the [`accuracy_report`] of each group of [`~TrainingOverlap.groups`], also of empty groups."""
        reports = {}
        for name, rows in self.groups(problems).items():
            reports[name] = accuracy_report([scores[row] for row in rows])
        return reports

    def remark(self, problems: Sequence[MathWordProblem | str]) -> str:
        """Return a remark on the overlap. It is empty if all training texts are known and contain no problem."""
        if not self.known:
            remark = f"The training texts of the model are unknown (its folder has no {TrainingTexts.file_name})"
            if self.texts is not None:
                remark += "; compared with the dataset's own training split instead"
            return remark
        remarks = []
        num_seen = sum(self.texts.seen(_text(problem))[0] for problem in problems)
        if num_seen:
            remarks.append(f"WARNING: the model was trained on {num_seen:,} of these {len(problems):,} problems")
        if self.texts.unknown:
            names = " and ".join(self.texts.unknown)
            remarks.append(f"The training texts of {names} are unknown and not compared")
        return ". ".join(remarks)

    def record(self, problems: Sequence[MathWordProblem | str]) -> Mapping[str, Any]:
        """Return the remark and the numbers and sources of the training texts for the record of a run."""
        facts = self.texts.to_dict() if self.known else {}
        return {"known": self.known, "compared_with": self.data, "remark": self.remark(problems), **facts}


def _text(problem: MathWordProblem | str) -> str:
    return problem if isinstance(problem, str) else problem.text
