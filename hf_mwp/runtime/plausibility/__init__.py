"""Re-ranking of the answers in a beam by the plausibility of their values."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "candidate_answer": ("CandidateAnswer", "candidate_answers"),
    "features": ("FEATURES", "FEATURE_LIST", "Feature"),
    "plausibility_reranker": ("PlausibilityError", "PlausibilityReranker", "RankedAnswer"),
    "question": ("Question",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
