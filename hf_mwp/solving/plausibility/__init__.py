"""
Plausible answers: a beam often holds the right value, and the solver, which never sees what a number is worth, cannot
tell it from an absurd one. A linear re-ranker over named features can.
"""

from .candidate_answer import CandidateAnswer, candidate_answers
from .errors import PlausibilityError
from .features import FEATURE_LIST, FEATURES, Feature
from .plausibility_reranker import PlausibilityReranker, RankedAnswer
from .question import Question


__all__ = [
    "FEATURES",
    "FEATURE_LIST",
    "CandidateAnswer",
    "Feature",
    "PlausibilityError",
    "PlausibilityReranker",
    "Question",
    "RankedAnswer",
    "candidate_answers",
    "fit_plausibility",
]


def __getattr__(name: str):
    # The fit alone needs torch.
    if name == "fit_plausibility":
        from .fitting import fit_plausibility

        return fit_plausibility
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
