"""Tasks, and the commands of `hf-mwp` as functions whose arguments are the dataclasses of the command's options."""

from ..lazy_names import lazy_names


_MODULES = {
    "GlueTask": "glue",
    "MathSeq2Seq": "seq2seq",
    "MathWordProblems": "math_word_problems",
    "Reporter": "reporter",
    "RunResult": "training",
    "Seq2SeqTask": "seq2seq",
    "Task": "task",
    "distill": "training",
    "evaluate": "evaluation",
    "evaluate_split": "evaluation",
    "find_sparse_teacher": "sparse_teachers",
    "pretrain": "training",
    "prune": "pruning",
    "pseudo_label": "pseudo_labels",
    "rerank": "reranking",
    "score_heads": "pruning",
    "train": "training",
}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
