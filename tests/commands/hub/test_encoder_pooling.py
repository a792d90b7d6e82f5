import pytest
import torch

from hf_mwp.commands.hub.model_card import has_identity_pooling
from hf_mwp.commands.hub.model_folder import with_pooling_layer
from hf_mwp.compress.models import MwpStudentModel
from tests.tiny import tiny_processor, tiny_solver


@pytest.fixture
def encoder():
    return tiny_solver(tiny_processor()).encoder.eval()


def test_an_encoder_without_one_gets_the_identity(encoder):
    assert encoder.pooler is None and not has_identity_pooling(encoder)
    pooled = with_pooling_layer(encoder)
    assert has_identity_pooling(pooled) and encoder.pooler is None
    output = pooled(torch.arange(3, 9).unsqueeze(0))
    assert torch.equal(output.pooler_output, output.last_hidden_state[:, 0].tanh())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_it_has_the_encoders_dtype(encoder, dtype):
    pooled = with_pooling_layer(encoder.to(dtype))
    assert {parameter.dtype for parameter in pooled.parameters()} == {dtype} and has_identity_pooling(pooled)


def test_a_trained_one_is_kept(encoder):
    trained = MwpStudentModel(encoder.config)
    assert with_pooling_layer(trained) is trained and not has_identity_pooling(trained)
