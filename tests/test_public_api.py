"""The names that `hf_mwp` promises. A change here is a change for users: say so in CHANGELOG.md."""

import pytest

import hf_mwp


NAMES = """
Expression ExpressionError MathWordProblem ProblemError
DataError MwpCollator MwpProcessor OutputVocabulary load_glue load_mwp_dataset
AthenaConfig AthenaModel GTSConfig GTSDecoder MwpSolver MwpSolverConfig
MwpStudentConfig MwpStudentForMaskedLM MwpStudentForMultipleChoice MwpStudentForPreTraining
MwpStudentForQuestionAnswering MwpStudentForSequenceClassification MwpStudentForTokenClassification MwpStudentModel
add_lora merge_lora
HeadPruningCallback export_dense prune_heads prune_neurons
average_parameters make_causal_student make_seq2seq_student mix_parameters
build_solver choose_student_shape load_solver make_student project_student
Labeller LanguageModelLabeller PlausibilityReranker fit_plausibility fit_reranker label_problems solve_problems
push_solver_to_hub
CausalLMDistillationConfig tokenize_causal_rows
DistillationConfig DistillationTrainer PreTrainingConfig PreTrainingTrainer RecursiveDistillationConfig
Seq2SeqDistillationConfig Seq2SeqDistillationTrainer SolverDistillationConfig SolverTrainingConfig SolverTrainer
Seq2SeqFineTuningConfig Seq2SeqFineTuningTrainer
StarkConfig StarkTrainer recursive_distillation
Decoder EnsembleTeacher GlueSource MwpLoader Solver Task add_dataset add_glue_task add_task
losses metrics objectives pruning
""".split()


def test_names_do_not_change_and_are_there():
    assert sorted(hf_mwp.__all__) == sorted(NAMES)
    for name in NAMES:
        assert getattr(hf_mwp, name) is not None
        assert name in dir(hf_mwp)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchThing"):
        hf_mwp.NoSuchThing  # noqa: B018
