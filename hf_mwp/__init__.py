"""Compact solvers of math word problems: pretrain, distil and prune them with Hugging Face Transformers.

The models and the pipeline are registered with Transformers as soon as both packages are imported, in either order.
Everything else is loaded on first use, so that solving with `hf_mwp.runtime` imports neither Transformers nor PyTorch.
"""

from importlib import import_module
from importlib.util import find_spec

from .compress.trainers import publishing
from .utils import provenance
from .utils.import_hook import ImportHook
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


def _register() -> None:
    """Register the models with the Auto classes, and the pipeline."""
    import_module(".solver.pipelines", __name__)


# Without PyTorch, nothing can be registered.
if find_spec("torch") is not None:
    ImportHook("transformers", __name__, _register).install()


def __getattr__(name: str):
    if name in _PACKAGES:
        return import_module(_PACKAGES[name], __name__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
