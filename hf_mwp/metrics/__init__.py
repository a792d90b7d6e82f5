"""Metrics of answers, equations, GLUE, generated texts and costs. Modules are imported on first use."""

from ..lazy_names import lazy_names


_MODULES = {
    "FAILURE_REASONS": "matching",
    "GLUE_FIGURES": "glue",
    "AnswerAccuracy": "evaluate_metrics",
    "EquationAccuracy": "evaluate_metrics",
    "PredictionScore": "accuracy",
    "TrainingOverlap": "training_overlap",
    "accuracy_report": "accuracy",
    "answers_match": "matching",
    "calibration_report": "calibration",
    "compare_costs": "efficiency",
    "compare_latency": "efficiency",
    "context_report": "accuracy",
    "count_flops": "efficiency",
    "count_parameters": "efficiency",
    "describe_compression": "efficiency",
    "equations_match": "matching",
    "f1_of_positive": "glue",
    "failure_reason": "matching",
    "matthews_correlation": "glue",
    "peak_memory": "efficiency",
    "pos_report": "pretraining",
    "reason_counts": "accuracy",
    "score_prediction": "accuracy",
    "share_right": "glue",
    "spearman_correlation": "glue",
    "text_figures": "text_generation",
    "text_report": "text_generation",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
