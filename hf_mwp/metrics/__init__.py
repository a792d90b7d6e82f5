"""What a model is worth: accuracy of answers and equations, why it fails, GLUE's figures, and what it costs to run.

What a name needs is loaded when it is used: the `evaluate.Metric` classes alone need `evaluate` and `datasets`.
"""

from importlib import import_module


_MODULES = {
    "FAILURE_REASONS": "failure_reasons",
    "GLUE_FIGURES": "glue",
    "AnswerAccuracy": "answer_accuracy",
    "EquationAccuracy": "equation_accuracy",
    "Latency": "latency",
    "PredictionScore": "accuracy",
    "TrainingOverlap": "training_overlap",
    "accuracy_report": "accuracy",
    "answers_match": "matching",
    "calibration_report": "calibration",
    "compare_costs": "model_costs",
    "compare_latency": "latency",
    "count_flops": "efficiency",
    "count_parameters": "efficiency",
    "equations_match": "matching",
    "f1_of_positive": "glue",
    "failure_reason": "failure_reasons",
    "matthews_correlation": "glue",
    "measure_latency": "latency",
    "peak_memory": "efficiency",
    "pos_report": "pos_tagging",
    "reason_counts": "accuracy",
    "score_prediction": "accuracy",
    "score_predictions": "accuracy",
    "share_right": "glue",
    "spearman_correlation": "glue",
}

__all__ = list(_MODULES)


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
