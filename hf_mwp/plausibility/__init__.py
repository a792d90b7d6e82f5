"""
Re-ranking of answers by plausibility: a beam often holds the right value, and the solver, which sees no values, cannot
tell it from an absurd one. A linear re-ranker over named features can.
"""

from .candidate_answer import CandidateAnswer, candidate_answers
from .features import FEATURE_LIST, FEATURES, Feature
from .plausibility_reranker import PlausibilityError, PlausibilityReranker, RankedAnswer
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
]
