"""Metrics of answers, equations, GLUE, generated texts and costs. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "accuracy": ("PredictionScore", "accuracy_report", "context_report", "reason_counts", "score_prediction"),
    "calibration": ("calibration_report",),
    "..compress.metrics.efficiency": (
        *("compare_costs", "compare_latency", "count_flops", "count_parameters", "describe_compression"),
        "peak_memory",
    ),
    "evaluate_metrics": ("AnswerAccuracy", "EquationAccuracy"),
    "..compress.metrics.glue": (
        "GLUE_FIGURES",
        "f1_of_positive",
        "matthews_correlation",
        "share_right",
        "spearman_correlation",
    ),
    "matching": ("FAILURE_REASONS", "answers_match", "equations_match", "failure_reason"),
    "pretraining": ("pos_report",),
    "..compress.metrics.text_generation": ("text_figures", "text_report"),
    "training_overlap": ("TrainingOverlap",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
