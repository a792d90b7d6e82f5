"""Beams of the problems to which a re-ranker is fitted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.expressions.evaluation import Number
from hf_mwp.runtime.plausibility.plausibility_reranker import PlausibilityError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import Solver

from .kept_records import ProgressBar
from .solve_problems import solve_problems


Trees = Sequence[tuple[Expression, float]]
"""Expressions of a beam with their log probabilities, best first."""


@dataclass
class SolvedProblems:
    """Problems with the trees of their beams."""

    problems: list[MathWordProblem]
    beams: list[Trees]


def join_solved(parts: Iterable[SolvedProblems]) -> SolvedProblems:
    """Return the problems of all parts in order."""
    problems = []
    beams = []
    for part in parts:
        problems += part.problems
        beams += part.beams
    return SolvedProblems(problems, beams)


@dataclass
class BeamSearch:
    """Beam search of a solver with fixed options."""

    model: Solver
    processor: MwpProcessor
    num_beams: int
    score_margin: float | None
    batch_size: int
    progress: ProgressBar

    def usable(self, rows: Iterable[MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        """Return the problems that have a right answer."""
        return [problem for problem in self.processor.problems(rows) if right_answer(problem) is not None]

    def solved(
        self, problems: list[MathWordProblem], num_beams: int | None = None, dropout: float = 0.0
    ) -> SolvedProblems:
        """Solve problems, if `dropout` is above 0 with this dropout in the encoder."""
        if not problems:
            return SolvedProblems([], [])
        num_beams = num_beams or self.num_beams
        context = _encoder_dropout(self.model, dropout) if dropout else nullcontext()
        with context:
            predictions = solve_problems(
                self.model,
                self.processor,
                problems,
                num_beams=num_beams,
                top_k=num_beams,
                score_margin=self.score_margin,
                batch_size=self.batch_size,
                progress=self.progress,
            )
        return SolvedProblems(problems, [prediction.beam.trees for prediction in predictions])


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


def right_answer(problem: MathWordProblem) -> Number | str | None:
    """Return the annotated answer or, without one, the value of the equation. `None` if neither has a value."""
    if problem.answer_value is not None:
        return problem.answer
    try:
        return problem.expression.evaluate(problem.numbers)
    except (ExpressionError, ProblemError):
        return None
