import math

import numpy as np
import pytest
import torch
from transformers.activations import ACT2FN

from hf_mwp.runtime import encoder
from hf_mwp.runtime.encoder import ACTIVATIONS, Encoder, attention, gelu
from hf_mwp.runtime.weights import Weights
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.utils.usage_error import UsageError
from tests.compress.models.tiny_student import VOCAB, pruned_config, tiny_config
from tests.tiny import tiny_processor, tiny_solver


def runtime_encoder(folder, model):
    model.save_pretrained(folder)
    return Encoder(Weights(folder), model.config.encoder_config.to_dict(), model.config.bottleneck_layers)


def solver_of(config, **fields):
    torch.manual_seed(3)
    decoder = tiny_solver(tiny_processor()).config.decoder_config
    decoder.encoder_hidden_size = config.hidden_size
    model = MwpSolver(MwpSolverConfig(encoder_config=config, decoder_config=decoder, **fields))
    for parameter in model.encoder.parameters():
        # Biases and norms too differ from their initial values.
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model.eval()


def assert_states_are_equal(encoder, model, ids):
    with torch.no_grad():
        expected = model.encode(ids).last_hidden_state[0]
    states = encoder(ids[0].numpy())
    assert states.dtype == np.float32
    np.testing.assert_allclose(states, expected, atol=2e-5)


@pytest.mark.parametrize(
    ("config", "bottlenecks"),
    [
        (tiny_config(), {}),
        (pruned_config(), {}),
        (tiny_config(embedding_size=10), {}),
        (tiny_config(position_offset=2, pad_token_id=1), {}),
        (tiny_config(hidden_act="relu"), {}),
        (tiny_config(), {"bottleneck_layers": [1, 3], "bottleneck_size": 5}),
    ],
    ids=["student", "pruned", "narrow embeddings", "positions of RoBERTa", "relu", "bottlenecks"],
)
def test_states_equal_those_of_the_model(tmp_path, config, bottlenecks):
    model = solver_of(config, **bottlenecks)
    encoder = runtime_encoder(tmp_path, model)
    for length in (1, 17):
        ids = torch.randint(3, VOCAB, (1, length), generator=torch.Generator().manual_seed(length))
        assert_states_are_equal(encoder, model, ids)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(tmp_path, dtype):
    model = solver_of(tiny_config()).to(dtype)
    assert_states_are_equal(runtime_encoder(tmp_path, model), model.float(), torch.arange(4, 12)[None])


@pytest.mark.parametrize(("config", "name"), [({"model_type": "bert"}, "bert"), ({"hidden_act": "mish"}, "mish")])
def test_other_encoder_or_activation_is_refused(config, name):
    with pytest.raises(UsageError, match=name):
        Encoder(None, {"model_type": "mwp_student"} | config)


def test_gelu_has_an_error_of_at_most_a_millionth():
    x = np.linspace(-8, 8, 20001, dtype=np.float32)
    exact = [value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x.tolist()]
    assert np.abs(gelu(x) - exact).max() < 1e-6
    assert gelu(np.array([-1e3, 0, 1e3], np.float32)).tolist() == [0, 0, 1e3]


def test_attention_does_not_depend_on_the_heads_that_are_computed_together(monkeypatch):
    query, key, value = np.random.default_rng(0).normal(size=(3, 4, 6, 5)).astype(np.float32)
    together = attention(query, key, value)
    weights = np.exp(query[1] @ key[1].T)
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(together[:, 5:10], weights @ value[1], rtol=1e-4)
    for limit in (1, 100):
        monkeypatch.setattr(encoder, "MAX_SCORES", limit)
        np.testing.assert_allclose(attention(query, key, value), together, rtol=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new", "silu"])
def test_activations_equal_those_of_pytorch(activation):
    x = np.linspace(-100, 100, 4001, dtype=np.float32)
    values = ACTIVATIONS[activation](x)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, ACT2FN[activation](torch.from_numpy(x)), rtol=1e-6, atol=1e-6)
