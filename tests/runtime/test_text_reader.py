import json

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.text_reader import TextReader
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


@pytest.mark.parametrize("fields", [{}, {"indexed_numbers": True}, {"indexed_numbers": True, "num_index_tokens": 2}])
def test_a_text_is_read_as_the_processor_does(tmp_path, fields):
    processor = tiny_processor(max_length=40, **fields)
    processor.save_pretrained(tmp_path)
    reader = TextReader(tmp_path)
    encoded = processor.encode(TEXTS)
    shares = unknown_shares(processor, encoded["input_ids"])
    for index, text in enumerate(TEXTS):
        input_ids, number_positions = reader.read(reader.problem(text))
        assert input_ids == encoded["input_ids"][index]
        assert number_positions == encoded["number_positions"][index]
        assert reader.unknown_share(input_ids) == shares[index]


def test_unknown_tokens_of_a_unigram_model(tmp_path):
    pieces = [(token, 0.0) for token in ("<pad>", "<unk>")] + [(token, -1.0) for token in "小明有个苹果"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.Unigram(pieces, 1, False)), unk_token="<unk>", pad_token="<pad>"
    )
    processor = MwpProcessor(tokenizer)
    processor.save_pretrained(tmp_path)
    reader = TextReader(tmp_path)
    shares = unknown_shares(processor, processor.encode(TEXTS)["input_ids"])
    found = [reader.unknown_share(reader.read(reader.problem(text))[0]) for text in TEXTS]
    assert found == shares and min(found) > 0.2


def test_language_and_number_words(tmp_path):
    tiny_processor(language="en", parse_number_words=False).save_pretrained(tmp_path)
    problem = TextReader(tmp_path).problem("Seven pens and 2 more.")
    assert (problem.language, problem.numbers) == ("en", ("2",))
    tiny_processor().save_pretrained(tmp_path)
    assert TextReader(tmp_path).problem(TEXTS[4]).numbers == ("-5", "1(1/2)", "25%")
    given = MathWordProblem("3", language="zh")
    assert TextReader(tmp_path).problem(given) is given


@pytest.mark.parametrize(
    ("reading", "numbers"), [("original", ("3",)), ("plain", ("3", "80%")), ("people", ("3", "2", "80%"))]
)
def test_the_reading_of_numbers_is_that_of_the_folder(tmp_path, reading, numbers):
    tiny_processor(number_reading=reading).save_pretrained(tmp_path)
    assert TextReader(tmp_path).problem("小明有3支笔，又买两支，打八折").numbers == numbers


def test_units_inside_of_numbers_are_read_as_the_processor_does(tmp_path):
    processor = tiny_processor(indexed_numbers=True)
    processor.save_pretrained(tmp_path)
    reader = TextReader(tmp_path)
    text = "苹果3千克半，4个"
    encoded = processor.encode([text])
    assert reader.read(reader.problem(text)) == (encoded["input_ids"][0], encoded["number_positions"][0])
    assert reader.problem(text).masked.text() == "苹果[NUM]千克，[NUM]个"


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"mwp_processor\.json"):
        TextReader(tmp_path)
    tiny_processor().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": 1}))
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        TextReader(tmp_path)
    (tmp_path / "mwp_processor.json").write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        TextReader(tmp_path)
