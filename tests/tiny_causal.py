"""Tiny causal language models of each supported type, and texts for them."""

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from tests.tiny import tiny_rows, tiny_tokenizer


CAUSAL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2", "gpt_neox")
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
}
# GPT-2 and GPT-NeoX have as many keys and values as queries, and derive the width of a head from their own width.
GPT_SIZES = {name: size for name, size in SIZES.items() if name not in ("num_key_value_heads", "head_dim")}
TYPE_SIZES = {
    "gpt2": {name: size for name, size in GPT_SIZES.items() if name != "intermediate_size"} | {"n_inner": 48},
    "gpt_neox": GPT_SIZES,
}
FIELDS = {
    # The first layer sees the last four tokens only, the second one all.
    "gemma2": {"sliding_window": 4, "query_pre_attn_scalar": 8, "attn_implementation": "eager"},
    "gemma3_text": {
        "sliding_window": 4,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "mistral": {"sliding_window": None},
    "phi3": {"original_max_position_embeddings": 64},
    "gpt2": {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0},
    "gpt_neox": {"attention_dropout": 0.0, "hidden_dropout": 0.0},
}


def tiny_causal(model_type="llama", seed=0, **changes):
    """
    A model of two layers, width 32, 4 heads of width 8 in 2 key-value groups, and 48 neurons, with random weights and
    biases that are not zero, in evaluation mode. It reads and writes the tokens of `tiny_tokenizer`. `changes` are
    fields of its config.
    """
    torch.manual_seed(seed)
    tokens = {"vocab_size": len(tiny_tokenizer()), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    fields = TYPE_SIZES.get(model_type, SIZES) | FIELDS.get(model_type, {}) | tokens | changes
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[model_type](**fields))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.05)
    return model.eval()


def tiny_causal_batch(count=4, seed=0, padding_side="right"):
    """Token ids, mask and labels `(texts, tokens)` of texts of different length; labels of padding are -100."""
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = padding_side
    texts = [row["text"] for row in tiny_rows(count, seed)]
    batch = tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return {**batch, "labels": labels}
