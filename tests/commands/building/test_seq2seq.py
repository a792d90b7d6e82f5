import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    M2M100Config,
    MBart50Tokenizer,
    MBartConfig,
    MBartTokenizer,
    NllbTokenizer,
)

from hf_mwp.commands.building.seq2seq import load_seq2seq_model
from tests.slow_parameters import slow_after
from tests.tiny_seq2seq import tiny_seq2seq


WORDS = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁dog", "▁un", "▁chien"]
SIZES = dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1)
SIZES |= dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings"), 16)
SIZES |= {"vocab_size": 300, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}


def scored_tokenizer(tokenizer_class):
    return tokenizer_class(vocab=[(word, -float(rank)) for rank, word in enumerate(WORDS)])


def nllb_tokenizer(tokenizer_class):
    return tokenizer_class({word: index for index, word in enumerate(WORDS)}, [])


@pytest.mark.parametrize(
    ("make", "tokenizer_class", "config_class", "names", "languages"),
    slow_after(
        1,
        [
            (scored_tokenizer, MBart50Tokenizer, MBartConfig, ("en", "fr"), ("en_XX", "fr_XX")),
            (scored_tokenizer, MBartTokenizer, MBartConfig, ("en_XX", "fr_XX"), ("en_XX", "fr_XX")),
            (nllb_tokenizer, NllbTokenizer, M2M100Config, ("eng_Latn", "fra_Latn"), ("eng_Latn", "fra_Latn")),
        ],
    ),
)
def test_multilingual_models_write_the_target_language(
    make, tokenizer_class, config_class, names, languages, tmp_path
):
    make(tokenizer_class).save_pretrained(tmp_path)
    AutoModelForSeq2SeqLM.from_config(config_class(**SIZES)).save_pretrained(tmp_path)
    model, tokenizer = load_seq2seq_model(str(tmp_path), languages=names)
    assert (tokenizer.src_lang, tokenizer.tgt_lang) == languages
    source, target = tokenizer.convert_tokens_to_ids(list(languages))
    assert source != target
    inputs = tokenizer("a dog", text_target="un chien")
    assert source in inputs["input_ids"]
    assert target in inputs["labels"]
    generated = model.generate(torch.tensor([inputs["input_ids"]]), max_length=5, do_sample=False)[0].tolist()
    # The first mBART models begin with the language, later ones with the end token and the language.
    first_ids = [target] if inputs["labels"][-1] == target else [2, target]
    assert generated[: len(first_ids)] == first_ids
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    # Columns without the name of a language keep the languages of the folder.
    reloaded, reloaded_tokenizer = load_seq2seq_model(str(tmp_path), languages=("1", "2"))
    assert reloaded_tokenizer("a dog", text_target="un chien") == inputs
    for name in ("forced_bos_token_id", "decoder_start_token_id"):
        assert getattr(reloaded.generation_config, name) == getattr(model.generation_config, name)


@pytest.mark.parametrize(("saved_length", "max_length"), slow_after(1, [(None, 64), (9, 9)]))
def test_models_without_a_maximum_length_generate_more_than_twenty_tokens(saved_length, max_length, save_encoder):
    model = tiny_seq2seq()
    model.generation_config.max_length = saved_length
    # The model has 64 positions.
    assert load_seq2seq_model(save_encoder(model))[0].generation_config.max_length == max_length


def test_dropout_of_t5_is_set(save_encoder):
    model, tokenizer = load_seq2seq_model(save_encoder(tiny_seq2seq("t5")), dropout=0.3)
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
    assert model.generation_config.max_length == min(tokenizer.model_max_length, 128)
