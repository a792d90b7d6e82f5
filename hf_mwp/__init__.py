"""Compact solvers of math word problems: pretrain, distil and prune them with Hugging Face Transformers.

Importing the package registers its models with the Auto classes and its pipeline. Everything else is loaded on first
use. Only the command line registers the models later, when it has parsed its arguments.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


__version__ = "0.1.0"

_LAZY = {
    "AthenaConfig": "models",
    "AthenaModel": "models",
    "GTSConfig": "models",
    "GTSDecoder": "models",
    "MwpSolver": "models",
    "MwpSolverConfig": "models",
    "MwpStudentConfig": "models",
    "MwpStudentForMaskedLM": "models",
    "MwpStudentForPreTraining": "models",
    "MwpStudentForSequenceClassification": "models",
    "MwpStudentModel": "models",
    "add_lora": "models.lora",
    "merge_lora": "models.lora",
    "Expression": "expressions",
    "ExpressionError": "expressions",
    "MathWordProblem": "problems",
    "ProblemError": "problems",
    "DataError": "data",
    "MwpCollator": "data",
    "MwpProcessor": "data",
    "OutputVocabulary": "data",
    "load_glue": "data",
    "load_mwp_dataset": "data",
    "HeadPruningCallback": "pruning",
    "export_dense": "pruning",
    "prune_heads": "pruning",
    "prune_neurons": "pruning",
    "average_parameters": "distillation",
    "make_seq2seq_student": "distillation",
    "mix_parameters": "distillation",
    "build_solver": "building",
    "load_solver": "building",
    "make_student": "building",
    "PlausibilityReranker": "plausibility",
    "fit_plausibility": "solving.fit_reranker",
    "fit_reranker": "solving.fit_reranker",
    "label_problems": "solving.label_problems",
    "solve_problems": "solving.solve_problems",
    "push_solver_to_hub": "hub",
    "DistillationConfig": "trainers",
    "DistillationTrainer": "trainers",
    "PreTrainingConfig": "trainers",
    "PreTrainingTrainer": "trainers",
    "RecursiveDistillationConfig": "trainers",
    "recursive_distillation": "trainers",
    "Seq2SeqDistillationConfig": "trainers",
    "Seq2SeqDistillationTrainer": "trainers",
    "SolverTrainingConfig": "trainers",
    "SolverTrainer": "trainers",
    "StarkConfig": "trainers",
    "StarkTrainer": "trainers",
}

# Subpackages available as attributes.
_PACKAGES = {"losses": ".losses", "metrics": ".metrics", "objectives": ".distillation.objectives"}

__all__ = [*_LAZY, *_PACKAGES]


def _is_command() -> bool:
    """Return whether the running program is `hf-mwp` or `python -m hf_mwp`."""
    if sys.argv[:1] == ["-m"]:
        # Python is still locating the module of `python -m`.
        words = sys.orig_argv
        return "-m" in words and words[words.index("-m") + 1].partition(".")[0] == __name__
    return Path(sys.argv[0]).stem == "hf-mwp" if sys.argv else False


# Registration imports PyTorch, which takes seconds. The command line registers after parsing its arguments
# (`cli.main`), so that --help is fast. Without PyTorch, `hf_mwp.runtime` still works.
if not _is_command() and find_spec("torch") is not None:
    from . import pipelines  # noqa: F401 (registers models and pipeline)


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    if name in _PACKAGES:
        return import_module(_PACKAGES[name], __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
