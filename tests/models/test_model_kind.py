import pytest
import torch

from hf_mwp.models.model_kind import CLASSIFIER, SEQ2SEQ, SOLVER, TOKEN_MODEL, kind_of
from tests.tiny import tiny_classifier, tiny_masked_lm, tiny_processor, tiny_solver
from tests.tiny_seq2seq import tiny_seq2seq


def test_kinds():
    solver, classifier, masked = tiny_solver(tiny_processor()), tiny_classifier(), tiny_masked_lm()
    assert kind_of(solver, torch.zeros(1, 2, 3)) is SOLVER
    assert kind_of(classifier, torch.zeros(1, 2)) is CLASSIFIER and kind_of(None) is CLASSIFIER
    assert kind_of(masked, torch.zeros(1, 2, 3)) is TOKEN_MODEL
    assert [kind.reduction for kind in (SOLVER, CLASSIFIER, TOKEN_MODEL)] == ["batchmean", "mean", "mean"]
    assert SOLVER.encoder(solver) is solver.encoder and CLASSIFIER.encoder(classifier) is classifier.base_model
    assert SOLVER.num_symbols(solver) == solver.vocabulary.num_symbols and CLASSIFIER.num_symbols(classifier) is None


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_of_peft_leave_the_kind():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"])
    assert kind_of(peft.get_peft_model(tiny_seq2seq(), config)) is SEQ2SEQ
