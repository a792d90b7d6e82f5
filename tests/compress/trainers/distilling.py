"""What the tests of distillation share besides their fixtures."""

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

from tests.tiny import TEMPLATES, tiny_rows


def pad(rows):
    longest = max(len(row["input_ids"]) for row in rows)

    def column(name, padding):
        return torch.tensor([row[name] + [padding] * (longest - len(row[name])) for row in rows])

    batch = {"input_ids": column("input_ids", 0), "attention_mask": column("attention_mask", 0)}
    if "labels" in rows[0]:
        labels = [row["labels"] for row in rows]
        batch["labels"] = column("labels", -100) if isinstance(labels[0], list) else torch.tensor(labels)
    return batch


def bart(width, seed):
    torch.manual_seed(seed)
    sizes = {"d_model": width, "encoder_layers": 2, "decoder_layers": 1, "vocab_size": 40}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 32}
    feed_forward = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "pad_token_id": 0, "dropout": 0.0}
    return BartForConditionalGeneration(BartConfig(**sizes, **heads, **feed_forward))


def copy_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def unchanged(module, before):
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def training_logs(trainer):
    return [entry for entry in trainer.state.log_history if "loss" in entry]


def assert_same_training(runs, abs):
    """Whether two trainings, each its logs and its weights, are the same but for rounding, losses up to `abs`."""
    (logs, weights), (other_logs, other_weights) = runs
    for ours, theirs in zip(logs, other_logs, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=abs)
    for name, value in weights.items():
        torch.testing.assert_close(value, other_weights[name], rtol=1e-4, atol=1e-5)


def distinct_rows(count=24, seed=0):
    """Rows of problems that stay different from each other when their numbers are masked."""
    rows = enumerate(tiny_rows(count, seed))
    return [{**row, "text": row["text"] + "？" * (index // len(TEMPLATES))} for index, row in rows]


def gpt2(width, seed):
    torch.manual_seed(seed)
    dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"n_embd": width, "n_layer": 2, "n_head": 2, "n_positions": 32, "n_inner": 24, "vocab_size": 40}
    return GPT2LMHeadModel(GPT2Config(**sizes, **dropouts, initializer_range=0.5))
