import pytest

from hf_mwp.runtime.problems import TaggedWord
from hf_mwp.runtime.tagging.ltp_tagger import join_numbers, locate_words
from tests.runtime.tagging.tagged_texts import tagged


def test_words_are_located_with_an_offset():
    text = " 相距 80 千米\u3000相距"
    pairs = [("相距 ", "v"), ("80 千", "m"), ("米\u3000", "q"), (" ", "x"), ("相距", "v")]
    words = locate_words(text, pairs, offset=5)
    assert words == [
        TaggedWord("相距", "v", 6, 8),
        TaggedWord("80", "m", 9, 11),
        TaggedWord("千", "m", 12, 13),
        TaggedWord("米", "q", 13, 14),
        TaggedWord("相距", "v", 15, 17),
    ]


def test_characters_in_no_word_are_skipped():
    assert locate_words("a\x00b", [("a", "x"), ("b", "y")]) == [TaggedWord("a", "x", 0, 1), TaggedWord("b", "y", 2, 3)]


@pytest.mark.parametrize(
    ("text", "words", "joined"),
    [
        ("用去(3/8)吨", "用去/v (/wp 3/m //wp 8/m )/wp 吨/q", "用去/v (3/8)/m 吨/q"),
        ("便宜20%，", "便宜/v 20/m %/wp ，/wp", "便宜/v 20%/m ，/wp"),
        ("1(3/4)千米", "1(3/4/nz )千/x 米/q", "1(3/4)/nz 千/x 米/q"),
        ("买5kg", "买5kg/n", "买/n 5/n kg/n"),
        ("比是6:5:4", "比/n 是/v 6:5/m :/wp 4/m", "比/n 是/v 6/m :/m 5/m :/wp 4/m"),
        ("没有", "没有/v", "没有/v"),
        ("4", "4/m", "4/m"),
        ("3.5 4.5", "3/m ./wp 5/n 4/q .5/m", "3.5/m 4.5/q"),
        ("", "", ""),
    ],
)
def test_numbers_are_joined(text, words, joined):
    pairs = [pair.rsplit("/", 1) for pair in words.split()]
    result = join_numbers(text, locate_words(text, pairs))
    assert tagged(result) == joined
    for word in result:
        assert text[word.start : word.end] == word.word


def test_number_in_no_word_is_not_added():
    words = [TaggedWord("有", "v", 0, 1), TaggedWord("个", "q", 2, 3)]
    assert join_numbers("有4个", words) == words
