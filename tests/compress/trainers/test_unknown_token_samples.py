import itertools
import time

import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from hf_mwp.compress.trainers import unknown_tokens
from hf_mwp.compress.trainers.unknown_tokens import sample_rows, special_ids, warn_of_unknown_tokens
from tests.tiny import tiny_processor


READABLE = "小明有3个苹果"


@pytest.fixture(autouse=True)
def propagated_warnings(monkeypatch):
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)


def warn_of(*texts):
    """Warns of the unknown tokens of texts."""
    processor = tiny_processor()
    warn_of_unknown_tokens(zip(processor.encode(list(texts))["input_ids"], texts, strict=True), processor)


@pytest.mark.parametrize(
    ("text", "share", "words", "encoder"),
    [
        # Three of four, three of four and two of three tokens; the number's placeholder does not count.
        ("鸡鹅羊有3", "75%", "'鸡', '鹅', '羊'", "bert-base-chinese"),
        ("Tom has 3 apples", "100%", "'Tom', 'has', 'apples'", "bert-base-uncased"),
        ("У Тома 3 яблока", "100%", "'У', 'Тома', 'яблока'", "bert-base-multilingual-cased"),
    ],
)
def test_a_warning_has_the_share_an_example_and_a_fitting_encoder(text, share, words, encoder, caplog):
    warn_of(text)
    [record] = caplog.records
    assert record.message.startswith(share)
    assert f"{words} in {text!r}" in record.message
    assert repr(encoder) in record.message


@pytest.mark.parametrize(("num_readable", "warns"), [(2, True), (3, True), (4, False)])
def test_up_to_five_percent_of_unknown_tokens_are_accepted(num_readable, warns, caplog):
    # One of 6 * num_readable + 1 tokens: 7.7, 5.3 and 4.0 %.
    warn_of(*[READABLE] * num_readable, "鸡")
    assert len(caplog.records) == warns


def test_without_texts_the_example_is_decoded(caplog):
    processor = tiny_processor()
    warn_of_unknown_tokens([(processor.encode(["鸡有3"])["input_ids"][0], None)], processor, "the teacher's tokenizer")
    assert "50%" in caplog.text
    assert "the teacher's tokenizer, such as '[CLS] [UNK] 有" in caplog.text
    assert "bert-base-chinese" in caplog.text


@pytest.mark.parametrize("unknown", [None, "<end>"])
def test_tokenizers_at_byte_level_have_no_unknown_tokens(unknown, caplog):
    backend = Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, "<end>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=unknown, eos_token="<end>")
    assert special_ids(tokenizer)[0] is None
    warn_of_unknown_tokens([([0, 0, 0, 1], "a")], tokenizer)
    warn_of_unknown_tokens([([0, 0, 0, 1], "a")], None)
    assert not caplog.records


@pytest.mark.parametrize("make_dataset", [list, Dataset.from_list])
def test_rows_are_sampled_at_equal_distances(make_dataset, monkeypatch):
    monkeypatch.setattr(unknown_tokens, "SAMPLE_SIZE", 4)
    dataset = make_dataset([{"input_ids": [number]} for number in range(10)])
    assert list(sample_rows(dataset)) == [(index, {"input_ids": [index]}) for index in (0, 2, 5, 7)]


@pytest.mark.parametrize("rows", [[], [{"pixels": 1}], [(1, 2)], iter([{"input_ids": [1]}]), None])
def test_nothing_is_sampled_from_other_rows(rows):
    assert list(sample_rows(rows)) == []


def test_sampling_stops_after_its_time(monkeypatch):
    seconds = itertools.count(0.0, 0.2)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    # The end is at 0.5; the third row is read at 0.6.
    assert len(list(sample_rows([{"input_ids": [1]}] * 10))) == 3
