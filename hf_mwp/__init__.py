"""Compact solvers of math word problems: pretrain, distil and prune them with Hugging Face Transformers.

Importing the package registers its models with the Auto classes and its pipeline; everything else is loaded when it is
first used.
"""

from importlib import import_module

from . import pipelines  # noqa: F401 (registers the pipeline)
from .models import (
    GTSConfig,
    GTSDecoder,
    MwpSolver,
    MwpSolverConfig,
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)


__version__ = "0.1.0"

_LAZY = {
    "Expression": "expressions",
    "ExpressionError": "expressions",
    "MathWordProblem": "problems",
    "ProblemError": "problems",
    "DataError": "data",
    "MwpCollator": "data",
    "MwpProcessor": "data",
    "OutputVocabulary": "data",
    "load_mwp_dataset": "data",
    "mix_parameters": "distillation",
    "DistillationConfig": "trainers",
    "DistillationTrainer": "trainers",
    "PreTrainingConfig": "trainers",
    "PreTrainingTrainer": "trainers",
    "SolverConfig": "trainers",
    "SolverTrainer": "trainers",
}

# Packages reached as attributes.
_PACKAGES = {"losses": ".losses", "metrics": ".metrics", "objectives": ".distillation.objectives"}

__all__ = [
    "GTSConfig",
    "GTSDecoder",
    "MwpSolver",
    "MwpSolverConfig",
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForPreTraining",
    "MwpStudentForSequenceClassification",
    "MwpStudentModel",
    *_PACKAGES,
    *_LAZY,
]


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    if name in _PACKAGES:
        return import_module(_PACKAGES[name], __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
