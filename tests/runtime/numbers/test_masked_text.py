import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from hf_mwp.runtime.expressions import parse_number
from hf_mwp.runtime.numbers.masked_text import NUMBER_READINGS
from hf_mwp.runtime.problems import mask_numbers
from tests.tiny import rebuilt


PIECES = "[NUM] [NUM0] 3 4.5 80% (3/8) 1(3/4) 1/2 -5 ３．５ ． , seven 三十 百分之 半 打八折 3千克 8:30 个 0".split()
PIECES += ["👩‍👩‍👧", "two hundred", "a third of ", "$3 million ", r"\frac{1}{", "\u0301", "\x00", "\n", " "]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
LITERALS = st.text(alphabet="0123456789-−/ .eE+%,:½(xX是商of１٣$又", max_size=25)


@settings(max_examples=60, deadline=None)
@given(
    text=TEXTS | LITERALS,
    language=st.sampled_from(["zh", "en"]),
    parse_number_words=st.sampled_from([None, True, False]),
    number_reading=st.sampled_from(NUMBER_READINGS),
)
@example(text="[NUM]有3个[NUM]", language="zh", parse_number_words=None, number_reading="plain")
@example(text="", language="en", parse_number_words=None, number_reading="plain")
def test_masking_is_inverted_exactly(text, language, parse_number_words, number_reading):
    masked = mask_numbers(text, language, parse_number_words, number_reading)
    assert rebuilt(masked) == text
    assert len(masked.segments) == len(masked.mentions) + 1
    end = 0
    for mention in masked.mentions:
        assert end <= mention.start
        assert text[mention.start : mention.end] == mention.text != ""
        assert parse_number(mention.literal) == mention.value
        end = mention.end
    for options in ({}, {"indexed": True}, {"indexed": True, "limit": 2}):
        shown_text = masked.text(**options)
        offsets = masked.placeholder_offsets(**options)
        placeholders = masked.placeholders(**options)
        assert [shown_text[start:end] for start, end in offsets] == placeholders
        assert len(placeholders) == len(masked.mentions)


def test_placeholders():
    masked = mask_numbers("2个[NUM]和3个、4个")
    assert masked.text() == "[NUM]个[NUM]和[NUM]个、[NUM]个"
    assert masked.placeholder_offsets() == [(0, 5), (12, 17), (19, 24)]
    assert masked.text(indexed=True) == "[NUM0]个[NUM]和[NUM1]个、[NUM2]个"
    assert masked.text(indexed=True, limit=2) == "[NUM0]个[NUM]和[NUM1]个、[NUM]个"


def test_numerals_do_not_overlap_with_numbers_in_digits():
    masked = mask_numbers("盐是三百分之1，糖是三", parse_number_words=True)
    assert [(mention.text, mention.literal) for mention in masked.mentions] == [("三百分之1", "(1/300)"), ("三", "3")]
    assert rebuilt(masked) == "盐是三百分之1，糖是三"


@pytest.mark.parametrize("text", ["", "没有数字", "😀"])
def test_text_without_numbers_is_unchanged(text):
    masked = mask_numbers(text)
    assert masked.segments == (text,)
    assert masked.text() == rebuilt(masked) == text
    assert masked.placeholder_offsets() == []
