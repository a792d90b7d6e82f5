import pytest
import torch
from transformers import BertModel, ElectraModel, RobertaForMaskedLM

from hf_mwp import MwpSolver
from hf_mwp.compress.models import MwpStudentForPreTraining
from hf_mwp.compress.pruning import HeadGates, NeuronGates, export_dense, prune_heads, prune_neurons
from hf_mwp.solver.data import TrainingTexts
from tests.compress.pruning.encoders import HEADS, tiny_batch, tiny_encoder
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


GONE_HEADS = {0: [1, 3], 1: [0, 1, 2, 3]}
GONE_NEURONS = {0: range(20), 2: [0, 5, 19]}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ["bert", "roberta", "camembert", "narrow electra", "mwp_student"])
def test_a_stock_model_of_equal_outputs(name, head, tmp_path):
    pruned = prune_neurons(prune_heads(tiny_encoder(name, head), GONE_HEADS), GONE_NEURONS)
    dense = export_dense(pruned)
    assert type(dense).__module__.startswith("transformers.")
    batch = tiny_batch(pruned)
    with torch.no_grad():
        torch.testing.assert_close(dense(**batch)[0], pruned(**batch)[0], rtol=0, atol=1e-5)
        dense.save_pretrained(tmp_path)
        again = type(dense).from_pretrained(tmp_path)
        torch.testing.assert_close(again(**batch)[0], pruned(**batch)[0], rtol=0, atol=1e-5)
    assert (dense.config.num_attention_heads, dense.config.intermediate_size) == (4, 20)


def test_where_positions_begin_decides_the_kind():
    assert type(export_dense(prune_heads(tiny_encoder("distilbert"), {}))) is BertModel
    assert type(export_dense(prune_heads(tiny_encoder("xlm-roberta", "ForMaskedLM"), {}))) is RobertaForMaskedLM


def test_projected_embeddings_are_those_of_electra():
    encoder = tiny_encoder("mwp_student", embedding_size=8, classifier_activation="gelu")
    dense = export_dense(encoder)
    batch = tiny_batch(encoder)
    assert type(dense) is ElectraModel
    with torch.no_grad():
        torch.testing.assert_close(dense(**batch)[0], encoder(**batch)[0], rtol=0, atol=1e-5)


def test_a_solver_gets_a_stock_encoder(tmp_path):
    processor = tiny_processor(max_length=32)
    pruned = prune_heads(tiny_solver(processor).eval(), {0: [0, 1]})
    dense = export_dense(pruned)
    dense.save_pretrained(tmp_path)
    again = MwpSolver.from_pretrained(tmp_path)
    assert type(again.encoder) is BertModel
    batch = processor([row["text"] for row in tiny_rows(4)])
    assert torch.equal(again.solve(**batch).sequences, pruned.solve(**batch).sequences)
    assert not {*map(id, dense.parameters())} & {*map(id, pruned.parameters())}


def test_training_texts_of_a_solver_are_kept(tmp_path):
    solver = tiny_solver(tiny_processor(max_length=32))
    solver.training_texts = TrainingTexts.from_texts(["有1个", "有2个"], ["a.txt"])
    solver.save_pretrained(tmp_path / "student")
    export_dense(MwpSolver.from_pretrained(tmp_path / "student")).save_pretrained(tmp_path / "dense")
    kept = TrainingTexts.load(tmp_path / "dense")
    assert (len(kept), kept.sources) == (2, ("a.txt",))


def test_what_gates_have_closed_stays_so():
    student = tiny_encoder("mwp_student")
    batch = tiny_batch(student)
    HeadGates(student).close(GONE_HEADS)
    NeuronGates(student).close(GONE_NEURONS)
    with torch.no_grad():
        torch.testing.assert_close(export_dense(student)(**batch)[0], student(**batch)[0], rtol=0, atol=1e-5)


def test_what_has_no_stock_form():
    with pytest.raises(ValueError, match="BertModel"):
        export_dense(tiny_encoder("bert"))
    with pytest.raises(ValueError, match="relu.*tanh"):
        export_dense(prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {}))
    with pytest.raises(ValueError, match=r"\b4 heads.*\b5\b.*\b24\b"):
        export_dense(tiny_encoder("mwp_student", head_dim=5))
    with pytest.raises(ValueError, match=r"\b4 heads.*\b12\b.*\b24\b"):
        export_dense(tiny_encoder("mwp_student", head_dim=12))
    with pytest.raises(ValueError, match=r"position_offset=5.*pad_token_id=1.*\b2\b"):
        export_dense(tiny_encoder("mwp_student", position_offset=5, pad_token_id=1))
    with pytest.raises(ValueError, match="embedding_size=24"):
        export_dense(tiny_encoder("mwp_student", embedding_size=24))
    with pytest.raises(ValueError, match="position_offset=2"):
        export_dense(tiny_encoder("mwp_student", embedding_size=8, position_offset=2, pad_token_id=1))
    with pytest.raises(ValueError, match="tanh"):
        export_dense(tiny_encoder("mwp_student", "ForSequenceClassification", embedding_size=8))
    with pytest.raises(ValueError, match="hidden_act='relu'"):
        export_dense(tiny_encoder("mwp_student", "ForMaskedLM", embedding_size=8, hidden_act="relu"))
    with pytest.raises(ValueError, match="MwpStudentForPreTraining.*MwpStudentModel"):
        export_dense(MwpStudentForPreTraining(tiny_encoder("mwp_student", num_pos_tags=3).config))


def test_a_pooler_that_no_stock_model_has_is_left_out():
    # That of DistilBERT's classifier has ReLU.
    encoder = prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {0: [0]}).mwp_student
    dense = export_dense(encoder)
    batch = tiny_batch(encoder)
    with torch.no_grad():
        found = dense(**batch)
        expected = encoder(**batch)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state, rtol=0, atol=1e-5)
    assert found.pooler_output is None and expected.pooler_output is not None
