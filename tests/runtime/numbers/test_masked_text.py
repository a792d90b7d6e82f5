import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from hf_mwp.runtime.problems import mask_numbers
from tests.tiny import rebuilt


PIECES = st.sampled_from(
    [
        "[NUM]",
        "[NUM0]",
        "3",
        "4.5",
        "80%",
        "(3/8)",
        "1(3/4)",
        "３．５",
        "．",
        ",",
        "seven",
        "two hundred",
        "三十",
        "半",
        "个",
    ]
    + ["😀", "👩‍👩‍👧", "\u0301", "\x00", "\n", " ", "0"]
)
TEXTS = st.text(max_size=60) | st.lists(PIECES, max_size=12).map("".join)


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, language=st.sampled_from(["zh", "en"]), parse_number_words=st.sampled_from([None, True, False]))
@example(text="[NUM]有3个[NUM]", language="zh", parse_number_words=None)
@example(text="", language="en", parse_number_words=None)
def test_masking_is_inverted_exactly(text, language, parse_number_words):
    masked = mask_numbers(text, language, parse_number_words)
    assert rebuilt(masked) == text
    assert len(masked.segments) == len(masked.mentions) + 1
    for mention in masked.mentions:
        assert text[mention.start : mention.end] == mention.text != ""
    for options in ({}, {"indexed": True}, {"indexed": True, "limit": 2}):
        shown, names = masked.text(**options), masked.placeholders(**options)
        offsets = masked.placeholder_offsets(**options)
        assert [shown[start:end] for start, end in offsets] == names
        assert len(names) == len(masked.mentions)


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
def test_text_without_numbers(text):
    masked = mask_numbers(text)
    assert masked.segments == (text,)
    assert masked.text() == rebuilt(masked) == text
    assert masked.placeholder_offsets() == []
