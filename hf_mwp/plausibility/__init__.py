"""
Re-ranking of answers by plausibility. A solver sees no values, so it cannot tell a right answer in its beam from an
absurd one; a linear re-ranker over named features can.
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
