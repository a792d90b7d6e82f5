"""The names that `hf_mwp` promises. A change here is a change for users: say so in CHANGELOG.md."""

import pytest

import hf_mwp


NAMES = [
    # expressions and problems
    "Expression",
    "ExpressionError",
    "MathWordProblem",
    "ProblemError",
    # data
    "DataError",
    "MwpCollator",
    "MwpProcessor",
    "OutputVocabulary",
    "load_glue",
    "load_mwp_dataset",
    # models
    "AthenaConfig",
    "AthenaModel",
    "GTSConfig",
    "GTSDecoder",
    "MwpSolver",
    "MwpSolverConfig",
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForPreTraining",
    "MwpStudentForSequenceClassification",
    "MwpStudentModel",
    "add_lora",
    "merge_lora",
    # pruning
    "HeadPruningCallback",
    "export_dense",
    "prune_heads",
    "prune_neurons",
    # distillation
    "average_parameters",
    "make_seq2seq_student",
    "mix_parameters",
    # building
    "build_solver",
    "load_solver",
    "make_student",
    # solving
    "LanguageModelLabeller",
    "PlausibilityReranker",
    "fit_plausibility",
    "fit_reranker",
    "label_problems",
    "solve_problems",
    # publishing
    "push_solver_to_hub",
    # trainers
    "DistillationConfig",
    "DistillationTrainer",
    "PreTrainingConfig",
    "PreTrainingTrainer",
    "RecursiveDistillationConfig",
    "Seq2SeqDistillationConfig",
    "Seq2SeqDistillationTrainer",
    "SolverDistillationConfig",
    "SolverTrainingConfig",
    "SolverTrainer",
    "StarkConfig",
    "StarkTrainer",
    "recursive_distillation",
    # packages reached as attributes
    "losses",
    "metrics",
    "objectives",
]


def test_names_are_frozen():
    assert sorted(hf_mwp.__all__) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_name_is_there(name):
    assert getattr(hf_mwp, name) is not None
    assert name in dir(hf_mwp)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        hf_mwp.NoSuchThing  # noqa: B018


def test_version():
    assert hf_mwp.__version__.count(".") == 2
