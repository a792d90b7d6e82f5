"""Tiny students and inputs for the tests of this folder."""

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
    return MwpStudentConfig(**{**defaults, **fields})


def pruned_config(**fields):
    return tiny_config(num_attention_heads=[4, 1, 0], head_dim=6, intermediate_size=[0, 7, 20], **fields)


def tiny_batch(pad_token_id=0, batch=3, length=9):
    generator = torch.Generator().manual_seed(1)
    input_ids = torch.randint(3, VOCAB, (batch, length), generator=generator)
    attention_mask = torch.ones_like(input_ids)
    for row in range(1, batch):
        attention_mask[row, length - 2 * row :] = 0
    return {"input_ids": input_ids.masked_fill(attention_mask == 0, pad_token_id), "attention_mask": attention_mask}


def assert_same_outputs(first, second):
    assert torch.equal(first.last_hidden_state, second.last_hidden_state)
    assert len(first.hidden_states) == len(second.hidden_states)
    for one, other in zip(first.hidden_states, second.hidden_states, strict=True):
        assert torch.equal(one, other)
