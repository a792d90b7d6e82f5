"""The labeller that proposes the trees in a solver's beam."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.models import Solver
from hf_mwp.solver.solving.kept_records import ProgressBar
from hf_mwp.solver.solving.solve_problems import solve_problems
from hf_mwp.solver.solving.solver_prediction import SolverPrediction
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_share
from hf_mwp.utils.provenance import ancestry_of

from .labeller import Candidate, Labeller, Proposal


@checked
class SolverLabeller(Labeller):
    """
    Labeller whose candidates are the trees in a solver's beam. Of the problems without an answer, it labels those with
    the most confident predictions. See [`label_problems`] for the arguments.
    """

    def __init__(
        self,
        model: Solver,
        processor: MwpProcessor,
        *,
        num_beams: int = 5,
        score_margin: float | None = None,
        pseudo_label_fraction: float = 0.0,
        reranker: PlausibilityReranker | None = None,
        batch_size: int = 32,
    ):
        check_share({"pseudo_label_fraction": pseudo_label_fraction}, "pseudo_label_fraction")
        self.model = model
        self.processor = processor
        self.num_beams = num_beams
        self.score_margin = score_margin
        self.pseudo_label_fraction = pseudo_label_fraction
        self.reranker = reranker
        self.batch_size = batch_size
        self.languages = (processor.language,)
        self.default_language = processor.language
        self.labels_unanswered = pseudo_label_fraction > 0

    def read(self, problems: Iterable[str | MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        return self.processor.problems(problems)

    def propose(
        self, problems: Sequence[MathWordProblem], unfinished: str | Path | None = None, progress: ProgressBar = None
    ) -> list[Proposal]:
        predictions = solve_problems(
            self.model,
            self.processor,
            problems,
            num_beams=self.num_beams,
            top_k=self.num_beams,
            score_margin=self.score_margin,
            reranker=self.reranker,
            batch_size=self.batch_size,
            unfinished=unfinished,
            progress=progress,
        )
        return [_proposal(prediction) for prediction in predictions]

    def surest(self, confidences: Sequence[float | None]) -> set[int]:
        predicted = [index for index, confidence in enumerate(confidences) if confidence is not None]
        predicted.sort(key=lambda index: confidences[index], reverse=True)
        return set(predicted[: round(len(confidences) * self.pseudo_label_fraction)])

    @property
    def training_texts(self) -> TrainingTexts:
        return ancestry_of(self.model)


def _proposal(prediction: SolverPrediction) -> Proposal:
    """Return the trees of a prediction, and the predicted tree as the best one if it has a value."""
    candidates = []
    best = None
    for index, (expression, log_probability) in enumerate(prediction.beam.trees):
        candidates.append(Candidate(expression, {"log_probability": log_probability}))
        is_predicted = expression == prediction.expression and prediction.score.value is not None
        if is_predicted and best is None:
            best = index
    confidence = None if best is None else prediction.confidence
    return Proposal(candidates, best, confidence)
