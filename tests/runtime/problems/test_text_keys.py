import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from hf_mwp.runtime.numbers.chinese_numerals import numerals_in_digits
from hf_mwp.runtime.problems.text_keys import TextKeys


@pytest.mark.parametrize(
    ("text", "exact", "masked"),
    [
        ("小明有4个苹果，买了2个？", "小明有4个苹果买了2个", "小明有#个苹果买了#个"),
        # Width, spaces, punctuation, numerals, case.
        ("小明有４个 苹果．买了两个", "小明有4个苹果买了2个", "小明有#个苹果买了#个"),
        ("甲、Ａ两地相距三百二十千米。", "甲a2地相距320千米", "甲a#地相距#千米"),
        ("三年级有 1,234 人", "3年级有1234人", "#年级有#人"),
        # What stands between digits belongs to the number, or to the calculation.
        ("共3．5千克．2天", "共3.5千克2天", "共#千克#天"),
        ("(3/8)小时", "3/8小时", "#小时"),
        ("3／8小时", "3/8小时", "#小时"),
        ("八分之三小时", "3/8小时", "#小时"),
        ("比是5：3", "比是5:3", "比是#"),
        ("3×4+12÷6=?", "3*4+12/6=", "#*#+#="),
        # Percents lose their sign, however they are written.
        ("百分之八十五的", "85的", "#的"),
        ("85％的", "85的", "#的"),
        # Numerals that are no number, digit by digit.
        ("二〇二四年", "2024年", "#年"),
        ("一二三", "123", "#"),
        # English.
        ("Tom has Two apples, and twenty-five pears.", "tomhas2applesand25pears", "tomhas#applesand#pears"),
        ("one dozen 20-foot ropes", "11220footropes", "#footropes"),
        ("？！ …", "", ""),
    ],
)
def test_exact_and_masked_key(text, exact, masked):
    assert TextKeys.of(text) == (exact, masked)


def test_numerals_too_long_for_a_number_are_read_digit_by_digit():
    assert numerals_in_digits("十" + "亿" * 5000) == "十" + "亿" * 5000
    assert numerals_in_digits("三" * 30) == "3" * 30
    assert numerals_in_digits("一共十五个") == "1共15个"


def test_number_of_100_000_digits_is_masked():
    assert TextKeys.of("有" + "9" * 100_000).masked == "有#"


PIECES = st.sampled_from(
    ["3", "三", "十", "百分之", "分之", "/", ".", "．", "(", "）", " ", "个", "½", "Ｗ", "two", "one", "²"]
)


@settings(max_examples=50)
@given(st.text(max_size=40) | st.lists(PIECES, max_size=12).map("".join))
@example("\ud800 3")
@example("3.\u03014")
# An escape sequence after normalisation.
@example("\x1bª")
def test_keys_have_no_spaces_digits_or_wide_characters(text):
    exact, masked = TextKeys.of(text)
    assert not any(character.isspace() for character in exact)
    assert not any(character.isdecimal() for character in masked)
    assert TextKeys.of(f" {text}。") == TextKeys.of(text) == TextKeys.of(unicodedata.normalize("NFKC", text))
