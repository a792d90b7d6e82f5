import pytest

from hf_mwp.runtime.problems import JiebaTagger, PosTagger, find_numbers, load_tagger
from tests.fresh_python import run_fresh


@pytest.fixture(scope="module")
def tagger():
    return JiebaTagger()


def pairs(tagger, text):
    return [(word.word, word.tag) for word in tagger.tag([text])[0]]


def test_words_and_tags(tagger):
    assert pairs(tagger, "小明有4个苹果，一共有多少个水果？") == [
        ("小明", "nr"),
        ("有", "v"),
        ("4", "m"),
        ("个", "q"),
        ("苹果", "n"),
        ("，", "x"),
        ("一共", "j"),
        ("有", "v"),
        ("多少", "m"),
        ("个", "q"),
        ("水果", "n"),
        ("？", "x"),
    ]


@pytest.mark.parametrize("number", ["4", "3.5", "80%", "(3/8)", "1(3/4)", "3,409", "９．５", "２５％", "0.58%"])
def test_a_number_is_one_word(tagger, number):
    assert pairs(tagger, f"用去{number}千克水泥") == [
        ("用", "p"),
        ("去", "v"),
        (number, "m"),
        ("千克", "q"),
        ("水泥", "n"),
    ]


def test_letters_and_full_stops_are_no_part_of_a_number(tagger):
    assert pairs(tagger, "He has 49. 5kg") == [
        ("He", "eng"),
        ("has", "eng"),
        ("49", "m"),
        (".", "x"),
        ("5", "m"),
        ("kg", "eng"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "　小明 有\t4 个\n苹果．\r\n",
        "买5kg，1(3/4)千米temp_a  3,409",
        "😀𠀀好，㎡²",
        "１２３４ＡＢＣ　，。",
        "[NUM]个[NUM0]",
        "9" * 300,
        "小明有4个苹果，" * 200,
    ],
)
def test_words_are_the_text_but_for_white_space(tagger, text):
    (words,) = tagger.tag([text])
    assert all(text[word.start : word.end] == word.word and word.word.strip() for word in words)
    assert [word.start for word in words] == sorted(word.start for word in words)
    assert all(left.end <= right.start for left, right in zip(words, words[1:], strict=False))
    assert "".join(word.word for word in words) == "".join(text.split())
    spans = {(word.start, word.end): word.tag for word in words}
    assert all(spans[number.start, number.end] == "m" for number in find_numbers(text))


def test_a_batch_is_its_texts(tagger):
    texts = ["小明有4个苹果", "", "甲乙相距80千米"]
    assert tagger.tag(texts) == [tagger.tag([text])[0] for text in texts]
    assert tagger.tag([]) == []


def test_it_is_what_the_name_loads(tagger):
    loaded = load_tagger("jieba")
    assert isinstance(loaded, JiebaTagger) and isinstance(loaded, PosTagger)
    assert (loaded.name, loaded.fingerprint) == ("jieba", tagger.fingerprint)
    assert len(tagger.fingerprint) == 16


def test_a_changed_dictionary_of_jieba_does_not_reach_it(tmp_path):
    # In another process, since jieba's own dictionary is global.
    code = """
import jieba
from hf_mwp.runtime.problems import JiebaTagger
tagger = JiebaTagger()
jieba.add_word("小明有", freq=10**9, tag="zz")
print([word.word for word in tagger.tag(["小明有苹果"])[0]])
"""
    (((words,), errors),) = run_fresh(tmp_path, (code,))
    assert words == str(["小明", "有", "苹果"])
    assert "Building prefix dict" not in errors
