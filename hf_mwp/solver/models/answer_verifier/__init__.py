from .configuration_answer_verifier import AnswerVerifierConfig
from .modeling_answer_verifier import AnswerVerifierModel, AnswerVerifierOutput


__all__ = ["AnswerVerifierConfig", "AnswerVerifierModel", "AnswerVerifierOutput"]
