"""Re-ranking of the answers in a beam by the plausibility of their values."""

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
