"""Tasks, and the commands of `hf-mwp` as functions whose arguments are the dataclasses of the command's options."""

from ..lazy_names import lazy_names


_NAMES = {
    "evaluation": ("evaluate", "evaluate_split"),
    "glue": ("GlueTask",),
    "math_word_problems": ("MathWordProblems",),
    "pretraining": ("pretrain",),
    "pruning": ("prune", "score_heads"),
    "pseudo_labels": ("pseudo_label",),
    "reporter": ("Reporter",),
    "reranking": ("rerank",),
    "seq2seq": ("MathSeq2Seq", "Seq2SeqTask"),
    "sparse_teachers": ("find_sparse_teacher",),
    "task": ("Task",),
    "training": ("RunResult", "distill", "train"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
