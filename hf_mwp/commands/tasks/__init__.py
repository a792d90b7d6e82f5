"""Tasks: data, models, collators and metrics behind `--task`. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "glue": ("GlueTask",),
    "math_word_problems": ("MathWordProblems",),
    "reporter": ("Reporter",),
    "seq2seq": (
        "MathSeq2Seq",
        "Seq2SeqTask",
    ),
    "task": ("Task",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
