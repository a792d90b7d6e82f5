"""Compact solvers of math word problems: pretrain, distil and prune them with Hugging Face Transformers.

Importing the package registers its models with the Auto classes and its pipeline. Everything else is loaded on first
use. Only the command line registers the models later, when it has parsed its arguments.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from .compress.trainers import publishing
from .utils import provenance
from .utils.lazy_names import lazy_names
from .utils.version import __version__  # noqa: F401 (public)


_NAMES = {
    "commands.building": ("build_solver", "choose_student_shape", "load_solver", "make_student"),
    "commands.hub": ("push_solver_to_hub",),
    "commands.tasks": ("Task",),
    "commands.tasks.glue_files": ("GlueSource", "load_glue"),
    "commands.tasks.make_task": ("add_glue_task", "add_task"),
    "compress.distillation": (
        *("EnsembleTeacher", "average_parameters", "make_causal_student", "make_seq2seq_student", "mix_parameters"),
        "project_student",
    ),
    "compress.models": (
        *("MwpStudentConfig", "MwpStudentForMaskedLM", "MwpStudentForMultipleChoice", "MwpStudentForPreTraining"),
        *("MwpStudentForQuestionAnswering", "MwpStudentForSequenceClassification"),
        *("MwpStudentForTokenClassification", "MwpStudentModel"),
    ),
    "compress.models.lora": ("add_lora", "merge_lora"),
    "compress.pruning": ("HeadPruningCallback", "export_dense", "prune_heads", "prune_neurons"),
    "compress.trainers": (
        *("CausalLMDistillationConfig", "DistillationConfig", "DistillationTrainer", "RecursiveDistillationConfig"),
        *("Seq2SeqDistillationConfig", "Seq2SeqDistillationTrainer", "Seq2SeqFineTuningConfig"),
        *("Seq2SeqFineTuningTrainer", "StarkConfig", "StarkTrainer"),
        *("recursive_distillation", "tokenize_causal_rows"),
    ),
    "runtime.expressions": ("Expression", "ExpressionError"),
    "runtime.output_vocabulary": ("OutputVocabulary",),
    "runtime.plausibility": ("PlausibilityReranker",),
    "runtime.problems": ("MathWordProblem", "ProblemError"),
    "solver.batches": ("MwpCollator", "MwpProcessor"),
    "solver.data": ("DataError", "MwpLoader", "add_dataset", "load_mwp_dataset"),
    "solver.labelling.label_problems": ("label_problems",),
    "solver.labelling.labeller": ("Labeller",),
    "solver.labelling.language_model_labeller": ("LanguageModelLabeller",),
    "solver.models": (
        *("AthenaConfig", "AthenaModel", "Decoder", "GTSConfig", "GTSDecoder", "MwpSolver", "MwpSolverConfig"),
        "Solver",
    ),
    "solver.solving.fit_reranker": ("fit_plausibility", "fit_reranker"),
    "solver.solving.solve_problems": ("solve_problems",),
    "solver.training": (
        *("PreTrainingConfig", "PreTrainingTrainer", "SolverDistillationConfig", "SolverTrainer"),
        "SolverTrainingConfig",
    ),
}
_all, _get, _ = lazy_names(__name__, _NAMES)

# Subpackages available as attributes.
_PACKAGES = {
    "losses": ".compress.losses",
    "metrics": ".solver.metrics",
    "objectives": ".compress.distillation.objectives",
    "pruning": ".compress.pruning",
}

__all__ = [*_all, *_PACKAGES]

# `compress` may not import the boxes above, so it receives these two loaders.
provenance.load_record_class = lambda: import_module(".solver.data", __name__).TrainingTexts
publishing.load_hub = lambda: import_module(".commands.hub", __name__)


def _is_command() -> bool:
    """Return whether the running program is `hf-mwp` or `python -m hf_mwp`."""
    if sys.argv[:1] == ["-m"]:
        # Python is still locating the module of `python -m`.
        words = sys.orig_argv
        return "-m" in words and words[words.index("-m") + 1].partition(".")[0] == __name__
    return bool(sys.argv) and Path(sys.argv[0]).stem == "hf-mwp"


# Registration imports PyTorch, which takes seconds: the command line registers after parsing, so that --help is fast.
if not _is_command() and find_spec("torch") is not None:
    from .solver import pipelines  # noqa: F401 (registers models and pipeline)


def __getattr__(name: str):
    if name in _PACKAGES:
        return import_module(_PACKAGES[name], __name__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
