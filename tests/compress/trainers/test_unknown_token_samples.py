import itertools
import time

import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from hf_mwp.compress.trainers import unknown_tokens
from hf_mwp.compress.trainers.unknown_tokens import sample_rows, special_ids, warn_of_unknown_tokens
from tests.tiny import tiny_processor, tiny_tokenizer


READABLE = "小明有3个苹果"


def sample(processor, texts):
    """Token ids and texts."""
    return list(zip(processor.encode(texts)["input_ids"], texts, strict=True))


@pytest.mark.parametrize(
    ("text", "share", "words", "encoder"),
    [
        # Three of four, three of four and two of three tokens; the number's placeholder does not count.
        ("鸡鹅羊有3", "75%", "'鸡', '鹅', '羊'", "bert-base-chinese"),
        ("Tom has 3 apples", "100%", "'Tom', 'has', 'apples'", "bert-base-uncased"),
        ("У Тома 3 яблока", "100%", "'У', 'Тома', 'яблока'", "bert-base-multilingual-cased"),
    ],
)
def test_warning_has_the_share_an_example_and_a_fitting_encoder(text, share, words, encoder, caplog, monkeypatch):
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)
    processor = tiny_processor()
    warn_of_unknown_tokens(sample(processor, [text]), processor)
    [record] = caplog.records
    assert record.message == (
        f"{share} of the tokens of the training texts are not in the vocabulary of the tokenizer, such as {words} in "
        f"{text!r}. The model cannot tell them apart. Use an encoder that knows these words, such as {encoder!r}."
    )


@pytest.mark.parametrize(("readable", "warns"), [(2, True), (3, True), (4, False)])
def test_up_to_five_percent_of_unknown_tokens_are_accepted(readable, warns, caplog, monkeypatch):
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)
    processor = tiny_processor()
    # One of 6 * readable + 1 tokens: 7.7, 5.3 and 4.0 %.
    assert len(processor.encode([READABLE])["input_ids"][0]) == 6 + 3
    warn_of_unknown_tokens(sample(processor, [READABLE] * readable + ["鸡"]), processor)
    assert len(caplog.records) == warns


def test_without_texts_the_example_is_decoded(caplog, monkeypatch):
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)
    processor = tiny_processor()
    warn_of_unknown_tokens([(processor.encode(["鸡有3"])["input_ids"][0], None)], processor, "the teacher's tokenizer")
    assert "50%" in caplog.text and "the teacher's tokenizer, such as '[CLS] [UNK] 有" in caplog.text
    assert "bert-base-chinese" in caplog.text


@pytest.mark.parametrize("unknown", [None, "<end>"])
def test_tokenizers_at_byte_level_know_all_tokens(unknown, caplog, monkeypatch):
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)
    backend = Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, "<end>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=unknown, eos_token="<end>")
    assert special_ids(tokenizer)[0] is None
    warn_of_unknown_tokens([([0, 0, 0, 1], "a")], tokenizer)
    warn_of_unknown_tokens([([0, 0, 0, 1], "a")], None)
    assert not caplog.records


def test_a_tokenizer_needs_no_processor():
    tokenizer = tiny_tokenizer()
    assert special_ids(tokenizer) == (tokenizer.unk_token_id, {*tokenizer.all_special_ids} - {tokenizer.unk_token_id})


@pytest.mark.parametrize("kind", [list, Dataset.from_list])
def test_rows_are_sampled_at_equal_distances(kind, monkeypatch):
    monkeypatch.setattr(unknown_tokens, "SAMPLE_SIZE", 4)
    rows = kind([{"input_ids": [number], "text": str(number)} for number in range(10)])
    assert [(index, row["input_ids"]) for index, row in sample_rows(rows)] == [(0, [0]), (2, [2]), (5, [5]), (7, [7])]


@pytest.mark.parametrize("rows", [[], [{"pixels": 1}], [(1, 2)], iter([{"input_ids": [1]}]), None])
def test_nothing_is_sampled_from_other_rows(rows):
    assert list(sample_rows(rows)) == []


def test_sampling_stops_after_its_time(monkeypatch):
    seconds = itertools.count(0.0, 0.2)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    # The end is at 0.5; the third row is read at 0.6.
    assert len(list(sample_rows([{"input_ids": [1]}] * 10))) == 3
