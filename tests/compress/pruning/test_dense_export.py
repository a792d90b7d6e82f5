import pytest
import torch
from transformers import BertModel, ElectraModel, RobertaForMaskedLM

from hf_mwp import MwpSolver
from hf_mwp.compress.models import MwpStudentForPreTraining
from hf_mwp.compress.pruning import HeadGates, NeuronGates, export_dense, prune, prune_heads
from tests.compress.pruning.encoders import HEADS, TASK_HEADS, first_output, head_batch, tiny_encoder
from tests.slow_parameters import slow_except
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


CUT_HEADS = {0: [1, 3], 1: [0, 1, 2, 3]}
CUT_NEURONS = {0: range(20), 2: [0, 5, 19]}


def assert_same_outputs(model, other_model, head="Model"):
    batch = head_batch(other_model, head)
    torch.testing.assert_close(first_output(model, batch), first_output(other_model, batch), rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", slow_except(HEADS + TASK_HEADS, "ForMaskedLM"))
@pytest.mark.parametrize(
    "name", slow_except(["bert", "roberta", "narrow electra", "mwp_student"], "narrow electra", "mwp_student")
)
def test_stock_model_has_equal_outputs(name, head, tmp_path):
    pruned = prune(tiny_encoder(name, head), CUT_HEADS, CUT_NEURONS)
    dense = export_dense(pruned)
    assert type(dense).__module__.startswith("transformers.")
    assert dense.config.num_attention_heads == 4
    assert dense.config.intermediate_size == 20
    assert_same_outputs(dense, pruned, head)
    dense.save_pretrained(tmp_path)
    assert_same_outputs(type(dense).from_pretrained(tmp_path), pruned, head)


def test_question_answering_has_two_scores_whatever_the_labels():
    student = tiny_encoder("mwp_student", "ForQuestionAnswering", num_labels=3)
    assert_same_outputs(export_dense(student), student, "ForQuestionAnswering")


def test_first_position_decides_the_class():
    assert type(export_dense(prune_heads(tiny_encoder("distilbert"), {}))) is BertModel
    assert type(export_dense(prune_heads(tiny_encoder("xlm-roberta", "ForMaskedLM"), {}))) is RobertaForMaskedLM


def test_projected_embeddings_become_electra():
    encoder = tiny_encoder("mwp_student", embedding_size=8, classifier_activation="gelu")
    dense = export_dense(encoder)
    assert type(dense) is ElectraModel
    assert_same_outputs(dense, encoder)


def test_solver_gets_a_stock_encoder(tmp_path):
    processor = tiny_processor(max_length=32)
    pruned = prune_heads(tiny_solver(processor).eval(), {0: [0, 1]})
    dense = export_dense(pruned)
    weights = {id(parameter) for parameter in pruned.parameters()}
    for parameter in dense.parameters():
        assert id(parameter) not in weights
    dense.save_pretrained(tmp_path)
    loaded = MwpSolver.from_pretrained(tmp_path)
    assert type(loaded.encoder) is BertModel
    batch = processor([row["text"] for row in tiny_rows(4)])
    assert torch.equal(loaded.solve(**batch).sequences, pruned.solve(**batch).sequences)


def test_closed_gates_stay_closed():
    student = tiny_encoder("mwp_student")
    HeadGates(student).close(CUT_HEADS)
    NeuronGates(student).close(CUT_NEURONS)
    assert_same_outputs(export_dense(student), student)


@pytest.mark.parametrize(
    ("head", "fields", "message"),
    [
        ("Model", {"head_dim": 5}, r"\b4 heads.*\b5\b.*\b24\b"),
        ("Model", {"head_dim": 12}, r"\b4 heads.*\b12\b.*\b24\b"),
        ("Model", {"position_offset": 5, "pad_token_id": 1}, r"position_offset=5.*pad_token_id=1.*\b2\b"),
        ("Model", {"embedding_size": 24}, "embedding_size=24"),
        ("Model", {"embedding_size": 8, "position_offset": 2, "pad_token_id": 1}, "position_offset=2"),
        ("ForSequenceClassification", {"embedding_size": 8}, "tanh"),
        ("ForMultipleChoice", {"embedding_size": 8}, "tanh"),
        ("ForMaskedLM", {"embedding_size": 8, "hidden_act": "relu"}, "hidden_act='relu'"),
    ],
)
def test_students_without_a_stock_form_raise(head, fields, message):
    with pytest.raises(ValueError, match=message):
        export_dense(tiny_encoder("mwp_student", head, **fields))


def test_other_models_raise():
    with pytest.raises(ValueError, match="BertModel"):
        export_dense(tiny_encoder("bert"))
    with pytest.raises(ValueError, match="relu.*tanh"):
        export_dense(prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {}))
    with pytest.raises(ValueError, match="MwpStudentForPreTraining.*MwpStudentModel"):
        export_dense(MwpStudentForPreTraining(tiny_encoder("mwp_student", num_pos_tags=3).config))


def test_pooler_without_a_stock_form_is_left_out():
    # That of DistilBERT's classifier has ReLU.
    encoder = prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {0: [0]}).mwp_student
    dense = export_dense(encoder)
    assert_same_outputs(dense, encoder)
    assert encoder.pooler is not None and dense.pooler is None
