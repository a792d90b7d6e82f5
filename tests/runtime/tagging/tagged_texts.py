"""Texts that taggers must split exactly. Not a test."""

from hf_mwp.runtime.problems import find_numbers


TEXTS = [
    "",
    "   \n",
    "　小明 有\t4 个\n苹果．\r\n",
    "买5kg，1(3/4)千米temp_a  3,409 元",
    "😀𠀀好，㎡²",
    "１２３４ＡＢＣ，２５％",
    "小明有4个苹果，" * 100,
    "苹果" * 600,
    "1234" * 200,
    "[NUM]个[NUM0]",
]


def tagged(words):
    return " ".join(f"{word.word}/{word.tag}" for word in words)


def tag_text(tagger, text):
    (words,) = tagger.tag([text])
    return tagged(words)


def assert_words_are_the_texts(tagger):
    """The words are the texts without white space, in order, and each number is a word."""
    for text, words in zip(TEXTS, tagger.tag(TEXTS), strict=True):
        end = 0
        for word in words:
            assert end <= word.start
            assert text[word.start : word.end] == word.word
            assert word.word.strip()
            end = word.end
        assert "".join(word.word for word in words) == "".join(text.split())
        spans = {(word.start, word.end) for word in words}
        for number in find_numbers(text):
            assert (number.start, number.end) in spans
        assert tagger.tag([text]) == [words]
    assert tagger.tag([]) == []
