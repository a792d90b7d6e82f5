import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.text_reader import TextReader, vocabulary_digest
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.solving.solve_problems import unknown_shares
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor


TEXTS = [
    "小明有4个苹果，又买了2个，一共有几个？",
    "小明有(1/2)个苹果，吃了25%，又买了3.5个和4个，还有几个？[NUM]",
    "Tom的苹果？7",
    " 把１２个苹果平均分给6人 ",
    "余额是-￥5，小明有1又1/2个苹果，吃了25 %",
    "每盒5个苹果，" * 12,
]


def saved_reader(processor, folder):
    processor.save_pretrained(folder)
    return TextReader(folder)


@pytest.mark.parametrize("fields", [{}, {"indexed_numbers": True}, {"indexed_numbers": True, "num_index_tokens": 2}])
def test_text_is_encoded_as_by_the_processor(tmp_path, fields):
    processor = tiny_processor(max_length=40, **fields)
    reader = saved_reader(processor, tmp_path)
    encoded = processor.encode(TEXTS)
    shares = unknown_shares(processor, encoded["input_ids"])
    for index, text in enumerate(TEXTS):
        input_ids, number_positions = reader.read(reader.problem(text))
        assert input_ids == encoded["input_ids"][index]
        assert number_positions == encoded["number_positions"][index]
        assert reader.unknown_share(input_ids) == shares[index]


def test_unknown_tokens_of_a_unigram_model(tmp_path):
    pieces = [("<pad>", 0.0), ("<unk>", 0.0)] + [(character, -1.0) for character in "小明有个苹果"]
    model = Tokenizer(models.Unigram(pieces, 1, False))
    processor = MwpProcessor(PreTrainedTokenizerFast(tokenizer_object=model, unk_token="<unk>", pad_token="<pad>"))
    reader = saved_reader(processor, tmp_path)
    expected = unknown_shares(processor, processor.encode(TEXTS)["input_ids"])
    assert min(expected) > 0.2
    for text, share in zip(TEXTS, expected, strict=True):
        input_ids, _ = reader.read(reader.problem(text))
        assert reader.unknown_share(input_ids) == share


def test_language_and_number_words_are_those_of_the_folder(tmp_path):
    reader = saved_reader(tiny_processor(language="en", parse_number_words=False), tmp_path)
    problem = reader.problem("Seven pens and 2 more.")
    assert (problem.language, problem.numbers) == ("en", ("2",))


def test_problem_is_read_unchanged(tmp_path):
    problem = MathWordProblem("3", language="zh")
    assert saved_reader(tiny_processor(), tmp_path).problem(problem) is problem


@pytest.mark.parametrize(("reading", "numbers"), [("original", "3"), ("plain", "3 80%"), ("people", "3 2 80%")])
def test_number_reading_is_that_of_the_folder(tmp_path, reading, numbers):
    reader = saved_reader(tiny_processor(number_reading=reading), tmp_path)
    assert reader.problem("小明有3支笔，又买两支，打八折").numbers == tuple(numbers.split())


def test_unit_inside_of_a_number_is_read_as_by_the_processor(tmp_path):
    processor = tiny_processor(indexed_numbers=True)
    reader = saved_reader(processor, tmp_path)
    text = "苹果3千克半，4个"
    encoded = processor.encode([text])
    assert reader.read(reader.problem(text)) == (encoded["input_ids"][0], encoded["number_positions"][0])
    assert reader.problem(text).masked.text() == "苹果[NUM]千克，[NUM]个"


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"mwp_processor\.json"):
        TextReader(tmp_path)
    tiny_processor().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": 1}')
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        TextReader(tmp_path)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), st.integers(0, 99)), st.lists(st.integers(0, 99)))
def test_digest_is_that_of_the_whole_vocabulary_in_json(vocabulary, probe_ids):
    content = json.dumps([sorted(vocabulary.items()), probe_ids]).encode()
    assert vocabulary_digest(vocabulary, probe_ids) == hashlib.blake2b(content, digest_size=16).hexdigest()
