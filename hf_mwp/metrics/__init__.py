"""What a solver is worth: accuracy of its answers and equations, why it fails, and what it costs to run.

The functions import without `evaluate` and `datasets`; the two `evaluate.Metric` classes load them on first access.
"""

from .accuracy import PredictionScore, accuracy_report, reason_counts, score_prediction, score_predictions
from .calibration import calibration_report
from .efficiency import count_flops, count_parameters, peak_memory
from .failure_reasons import FAILURE_REASONS, failure_reason
from .latency import Latency, compare_latency, measure_latency
from .matching import answers_match, equations_match
from .pos_tagging import pos_report
from .training_overlap import TrainingOverlap


__all__ = [
    "FAILURE_REASONS",
    "AnswerAccuracy",
    "EquationAccuracy",
    "Latency",
    "PredictionScore",
    "TrainingOverlap",
    "accuracy_report",
    "answers_match",
    "calibration_report",
    "compare_latency",
    "count_flops",
    "count_parameters",
    "equations_match",
    "failure_reason",
    "measure_latency",
    "peak_memory",
    "pos_report",
    "reason_counts",
    "score_prediction",
    "score_predictions",
]


def __getattr__(name):
    if name == "AnswerAccuracy":
        from .answer_accuracy import AnswerAccuracy

        return AnswerAccuracy
    if name == "EquationAccuracy":
        from .equation_accuracy import EquationAccuracy

        return EquationAccuracy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
