"""Tiny sequence-to-sequence models of each kind, and pairs of texts for them."""

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    M2M100Config,
    MarianConfig,
    MBartConfig,
    PegasusConfig,
    T5Config,
)

from tests.tiny import tiny_rows, tiny_tokenizer


KINDS = {
    "bart": BartConfig,
    "mbart": MBartConfig,
    "marian": MarianConfig,
    "pegasus": PegasusConfig,
    "m2m_100": M2M100Config,
    "t5": T5Config,
}


def tiny_seq2seq(kind="bart", width=16, encoder_layers=2, decoder_layers=2, seed=0, dropout=0.0, **fields):
    """A model with random weights that reads and writes the tokens of `tiny_tokenizer`."""
    torch.manual_seed(seed)
    tokens = {"vocab_size": len(tiny_tokenizer()), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    sizes = {"d_model": width, "decoder_start_token_id": 2, "init_std": 0.3}
    if kind == "t5":
        heads = {"d_kv": 8, "d_ff": 24, "num_heads": 2, "dropout_rate": dropout, "initializer_factor": 1.0}
        sizes |= {"num_layers": encoder_layers, "num_decoder_layers": decoder_layers, **heads}
        sizes.pop("init_std")
    else:
        sizes |= {"encoder_layers": encoder_layers, "decoder_layers": decoder_layers, "dropout": dropout}
        sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
        sizes |= dict.fromkeys(("attention_dropout", "encoder_layerdrop", "decoder_layerdrop"), 0.0)
        sizes |= {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "forced_eos_token_id": 3}
    return AutoModelForSeq2SeqLM.from_config(KINDS[kind](**(tokens | sizes | fields))).eval()


def tiny_pairs(count=8, seed=0):
    """Encoded rows, from texts to their ends."""
    tokenizer = tiny_tokenizer()
    rows = []
    for index, row in enumerate(tiny_rows(count, seed), start=1):
        encoded = tokenizer(row["text"], return_token_type_ids=False)
        labels = tokenizer(row["text"][-7:])["input_ids"][1:]
        rows.append({**encoded, "labels": labels[index % 3 :]})
    return rows
