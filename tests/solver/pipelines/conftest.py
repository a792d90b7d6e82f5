"""Pipelines of a tiny solver, and fixed results of its search."""

import pytest
import torch
from transformers import pipeline

from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.models import SolveOutput


class FixedSearch:
    """Finds the same expressions for all problems, and records the numbers of beams and of expressions."""

    def __init__(self, solver, *expressions, scores=None, finished=None):
        ids = [solver.processor.vocabulary.encode(Expression.from_infix(text)) for text in expressions]
        longest = max(map(len, ids))
        self.sequences = torch.tensor([row + [-100] * (longest - len(row)) for row in ids])
        self.scores = torch.tensor(scores or [-0.5] * len(ids))
        self.finished = torch.tensor(finished or [True] * len(ids))
        self.calls = []

    def __call__(self, input_ids, num_beams=1, num_return_sequences=1, **kwargs):
        self.calls.append((num_beams, num_return_sequences))
        batch = len(input_ids)
        return SolveOutput(
            sequences=self.sequences[:num_return_sequences].expand(batch, -1, -1),
            scores=self.scores[:num_return_sequences].expand(batch, -1),
            finished=self.finished[:num_return_sequences].expand(batch, -1),
        )


@pytest.fixture(scope="module")
def solver(solver_folder):
    return pipeline("math-word-problem", model=str(solver_folder), device="cpu")


@pytest.fixture
def fix_search(solver, monkeypatch):
    """Makes the solver find the same expressions for all problems."""

    def fix(*expressions, **options):
        search = FixedSearch(solver, *expressions, **options)
        monkeypatch.setattr(solver.model, "solve", search)
        return search

    return fix
