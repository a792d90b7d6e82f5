"""Beams of the problems to which a re-ranker is fitted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from hf_mwp.runtime.answer import Trees
from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.expressions.evaluation import Number
from hf_mwp.runtime.plausibility.answer_verifier import AnswerVerifier
from hf_mwp.runtime.plausibility.features import FEATURES
from hf_mwp.runtime.plausibility.plausibility_reranker import PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import Solver

from .kept_records import ProgressBar
from .solve_problems import Verification, find_beams


@dataclass
class SolvedProblems:
    """Problems with the trees of their beams, and the verifier's scores of the answers, empty without a verifier."""

    problems: list[MathWordProblem]
    beams: list[Trees]
    verifier_scores: list[Sequence[float]]


def join_solved(parts: Iterable[SolvedProblems]) -> SolvedProblems:
    """Return the problems of all parts in order."""
    joined = SolvedProblems([], [], [])
    for part in parts:
        joined.problems += part.problems
        joined.beams += part.beams
        joined.verifier_scores += part.verifier_scores
    return joined


@dataclass
class BeamSearch:
    """Beam search of a solver with fixed options."""

    model: Solver
    processor: MwpProcessor
    num_beams: int
    score_margin: float | None
    batch_size: int
    progress: ProgressBar
    verifier: AnswerVerifier | None = None

    def usable(self, rows: Iterable[MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        """Return the problems that have a right answer."""
        return usable_problems(self.processor, rows)

    def solved(
        self, problems: list[MathWordProblem], num_beams: int | None = None, dropout: float = 0.0
    ) -> SolvedProblems:
        """Solve problems, if `dropout` is above 0 with this dropout in the encoder."""
        if not problems:
            return SolvedProblems([], [], [])
        num_beams = num_beams or self.num_beams
        settings = {}
        if self.score_margin is not None:
            settings["score_margin"] = self.score_margin
        context = _encoder_dropout(self.model, dropout) if dropout else nullcontext()
        with context:
            beams = find_beams(
                self.model,
                self.processor,
                problems,
                self.batch_size,
                self.progress,
                self._verification,
                num_beams=num_beams,
                top_k=num_beams,
                **settings,
            )
        trees = [beam.trees for beam in beams]
        scores = [beam.verifier_scores for beam in beams]
        return SolvedProblems(problems, trees, scores)

    @property
    def _verification(self) -> Verification | None:
        """Function that lets the verifier read all answers."""
        if self.verifier is None:
            return None
        weights = {feature.name: float(feature.name == "log_mass") for feature in FEATURES}
        reranker = PlausibilityReranker(self.processor.language, weights, self.num_beams, verifier=self.verifier)
        return partial(reranker.verify, limit=None)


@contextmanager
def _encoder_dropout(model: Solver, rate: float) -> Iterator[None]:
    """Context manager that activates dropout in the encoder, with a fixed seed."""
    former_rates = {layer: layer.p for layer in model.encoder.modules() if isinstance(layer, nn.Dropout)}
    if not former_rates:
        raise PlausibilityError("the encoder has no dropout layers. Set `mc_dropout_fraction` to 0")
    hook = model.encoder.register_forward_pre_hook(lambda encoder, inputs: encoder.train() and None)
    try:
        for layer in former_rates:
            layer.p = rate
        with torch.random.fork_rng():
            torch.manual_seed(0)
            yield
    finally:
        hook.remove()
        model.encoder.train(model.training)
        for layer, former_rate in former_rates.items():
            layer.p = former_rate


def usable_problems(
    processor: MwpProcessor, rows: Iterable[MathWordProblem | Mapping[str, Any]]
) -> list[MathWordProblem]:
    """Return the problems that have a right answer."""
    return [problem for problem in processor.problems(rows) if right_answer(problem) is not None]


def right_answer(problem: MathWordProblem) -> Number | str | None:
    """Return the annotated answer or, without one, the value of the equation. `None` if neither has a value."""
    if problem.answer_value is not None:
        return problem.answer
    try:
        return problem.expression.evaluate(problem.numbers)
    except (ExpressionError, ProblemError):
        return None
