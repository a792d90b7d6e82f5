import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    M2M100Config,
    MBart50Tokenizer,
    MBartConfig,
    MBartTokenizer,
    NllbTokenizer,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_mwp.commands.building.seq2seq import load_seq2seq_model
from tests.tiny import tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


WORDS = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁dog", "▁un", "▁chien"]
SIZES = dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1)
SIZES |= dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings"), 16)
SIZES |= {"vocab_size": 300, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}


def scored(kind):
    return kind(vocab=[(word, -float(place)) for place, word in enumerate(WORDS)])


@pytest.mark.parametrize(
    ("make", "config", "names", "found"),
    [
        (lambda: scored(MBart50Tokenizer), MBartConfig, ("en", "fr"), ("en_XX", "fr_XX")),
        (lambda: scored(MBartTokenizer), MBartConfig, ("en_XX", "fr_XX"), ("en_XX", "fr_XX")),
        (lambda: NllbTokenizer({word: place for place, word in enumerate(WORDS)}, []), M2M100Config,
         ("eng_Latn", "fra_Latn"), ("eng_Latn", "fra_Latn")),
    ],
)  # fmt: skip
def test_multilingual_models_write_the_target_language(make, config, names, found, tmp_path):
    make().save_pretrained(tmp_path)
    AutoModelForSeq2SeqLM.from_config(config(**SIZES)).save_pretrained(tmp_path)
    model, tokenizer = load_seq2seq_model(str(tmp_path), languages=names)
    assert (tokenizer.src_lang, tokenizer.tgt_lang) == found
    source, target = map(tokenizer.convert_tokens_to_ids, found)
    assert source != target and source in (read := tokenizer("a dog", text_target="un chien"))["input_ids"]
    assert target in read["labels"]
    generated = model.generate(torch.tensor([read["input_ids"]]), max_length=5, do_sample=False)[0].tolist()
    # The first mBART models begin with the language, later ones with the end token and the language.
    first = [target] if read["labels"][-1] == target else [2, target]
    assert generated[: len(first)] == first
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    # Columns without the name of a language keep the languages of the folder.
    again, reader = load_seq2seq_model(str(tmp_path), languages=("1", "2"))
    assert reader("a dog", text_target="un chien") == read
    for name in ("forced_bos_token_id", "decoder_start_token_id"):
        assert getattr(again.generation_config, name) == getattr(model.generation_config, name)


@pytest.mark.parametrize(("given", "found"), [(None, 64), (9, 9)])
def test_models_without_a_maximum_length_generate_more_than_twenty_tokens(given, found, tmp_path):
    model = tiny_seq2seq()
    model.generation_config.max_length = given
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    # The model has 64 positions.
    assert load_seq2seq_model(str(tmp_path))[0].generation_config.max_length == found


def test_the_dropout_of_t5(tmp_path):
    sizes = {"vocab_size": 300, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model, tokenizer = load_seq2seq_model(str(tmp_path), dropout=0.3)
    assert {each.p for each in model.modules() if isinstance(each, torch.nn.Dropout)} == {0.3}
    assert model.generation_config.max_length == min(tokenizer.model_max_length, 128)
