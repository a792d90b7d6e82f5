"""Tiny students for the tests of this folder."""

import torch

from hf_mwp.compress.models.mwp_student import MwpStudentConfig


VOCAB = 40


def tiny_config(**fields):
    defaults = {
        "vocab_size": VOCAB,
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 20,
        "max_position_embeddings": 32,
        "initializer_range": 0.3,
        "num_pos_tags": 5,
    }
    return MwpStudentConfig(**defaults | fields)


def pruned_config(**fields):
    return tiny_config(num_attention_heads=[4, 1, 0], head_dim=6, intermediate_size=[0, 7, 20], **fields)


def assert_same_states(outputs, other_outputs):
    torch.testing.assert_close(outputs.last_hidden_state, other_outputs.last_hidden_state, rtol=0, atol=0)
    torch.testing.assert_close(outputs.hidden_states, other_outputs.hidden_states, rtol=0, atol=0)


def assert_all_weights_are_loaded(info):
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
