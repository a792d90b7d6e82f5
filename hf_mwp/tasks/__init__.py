"""Tasks, and the commands of `hf-mwp` as functions whose arguments are the dataclasses of the command's options."""

from ..lazy_names import lazy_names


_NAMES = {
    "glue": ("GlueTask",),
    "math_word_problems": ("MathWordProblems",),
    "reporter": ("Reporter",),
    "runs.evaluation": ("evaluate", "evaluate_split"),
    "runs.pretraining": ("pretrain",),
    "runs.pruning": ("prune", "score_heads"),
    "runs.pseudo_labels": ("pseudo_label",),
    "runs.reranking": ("rerank",),
    "runs.sparse_teachers": ("find_sparse_teacher",),
    "runs.training": ("RunResult", "distill", "train"),
    "seq2seq": ("MathSeq2Seq", "Seq2SeqTask"),
    "task": ("Task",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
