import pytest

from hf_mwp.runtime.problems import JiebaTagger, PosTagger, load_tagger
from tests.fresh_python import run_fresh
from tests.runtime.tagging.tagged_texts import assert_words_are_the_texts, tag_text


@pytest.fixture(scope="module")
def tagger():
    return JiebaTagger()


def test_words_and_tags(tagger):
    assert tag_text(tagger, "小明有4个苹果，一共有多少个水果？") == (
        "小明/nr 有/v 4/m 个/q 苹果/n ，/x 一共/j 有/v 多少/m 个/q 水果/n ？/x"
    )


@pytest.mark.parametrize("number", ["3.5", "80%", "(3/8)", "1(3/4)", "3,409", "９．５", "２５％", "0.58%"])
def test_a_number_is_one_word(tagger, number):
    assert tag_text(tagger, f"用去{number}千克水泥") == f"用/p 去/v {number}/m 千克/q 水泥/n"


def test_letters_and_full_stops_are_no_part_of_a_number(tagger):
    assert tag_text(tagger, "He has 49. 5kg") == "He/eng has/eng 49/m ./x 5/m kg/eng"


@pytest.mark.slow
def test_words_are_the_texts_without_white_space(tagger):
    assert_words_are_the_texts(tagger)


def test_tagger_is_loaded_by_its_name(tagger):
    loaded = load_tagger("jieba")
    assert isinstance(loaded, JiebaTagger)
    assert isinstance(loaded, PosTagger)
    assert (loaded.name, loaded.fingerprint) == ("jieba", tagger.fingerprint)


@pytest.mark.slow
def test_changed_dictionary_of_jieba_is_not_used(tmp_path):
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
