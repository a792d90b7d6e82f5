import re
from collections import Counter

import pytest

from hf_mwp.runtime.problems import find_keywords
from hf_mwp.runtime.problems.keywords import read_keywords


def keywords(text, language="zh"):
    return [text[start:end] for start, end in find_keywords(text, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("比去年多20%，一共多少元？", "比 去年 多 一共 多少 元"),
        ("小明比小红多4个苹果，两人一共有多少个？", "比 多 个 人 一共 多少 个"),
        ("用去[NUM]吨，还剩全部的(3/8)", "用去 吨 还剩 全部"),
        ("平均每小时行80千米", "平均每 小时 千米"),
        ("5 米，5　米，5  米", "米 米"),
        ("大米，小米，个子，本来，天气", ""),
        ("3天气温", ""),
        ("足球比赛中许多少先队员参加，商店买商品", ""),
        ("2.5kg，3KG，kgs，5cm2，80km/h", "kg KG cm2 km/h"),
    ],
)
def test_chinese_keywords(text, expected):
    assert keywords(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She has twice as many apples as Tom. How many MORE apples?", "twice as many|How many MORE"),
        ("Each of the 5 bags cost 3 dollars", "Each|of the|bags|cost|dollars"),
        ("reach, peach, perimeters, lefty, costly", ""),
        ("She bought bags, 3 bags", "bought|bags"),
        ("[NUM] kg and kg", "kg"),
        ("It is 20% off", "off"),
        ("She took off her hat after school", ""),
    ],
)
def test_english_keywords(text, expected):
    assert "|".join(keywords(text, "en")) == expected


def words_of(language):
    """The words found anywhere, those found only after a number, and the exceptions, which contain a word."""
    lists = read_keywords(language)
    anywhere = set()
    after_number = set()
    for group in lists["groups"]:
        words = after_number if group.get("after_number") else anywhere
        words.update(group["words"])
    return anywhere, after_number, set(lists["exceptions"])


COUNT_BEFORE = r"[0-9０-９%％）)\]一二两三四五六七八九十百千万亿半几每多少第这那某][ \u3000]?$"


def naive(text, language):
    """Tries every word at every position, longest first."""
    anywhere, after_number, exceptions = words_of(language)
    spans = []
    position = 0
    while position < len(text):
        end = position + 1
        for word in sorted(anywhere | after_number | exceptions, key=len, reverse=True):
            if not text[position:].lower().startswith(word):
                continue
            is_cut = word[-1].isascii() and re.match("[a-zA-Z]", text[position + len(word) :])
            if word in anywhere | exceptions:
                is_cut = is_cut or word[0].isascii() and re.search("[a-zA-Z]$", text[:position])
            else:
                is_cut = is_cut or not re.search(COUNT_BEFORE, text[:position])
            if not is_cut:
                end = position + len(word)
                if word not in exceptions:
                    spans.append((position, end))
                break
        position = end
    return spans


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "甲乙两人同时从相距280千米的两地相向而行，甲每小时行60km，经过几小时相遇？"),
        ("zh", "商店运来一批水果，第1天卖出(2/5)，第二天比第一天多卖出20%，还剩 30 千克，这批水果一共多少千克？"),
        ("zh", "学校举行数学比赛，共20道题，做对1题得5分，小明得了76分，他做对了几题？"),
        ("zh", "一个圆柱的底面半径是3厘米，高是10 cm，它的体积是多少立方厘米？"),
        ("en", "A restaurant sold 6 slices of pie during lunch and 5 more during dinner. How many slices in all?"),
        ("en", "John runs 3 miles per hour, twice as fast as Mary; she took off at 5 pm. How far is it altogether?"),
    ],
)
def test_longest_word_at_each_position_is_found(language, text):
    spans = find_keywords(text, language)
    assert spans
    assert spans == naive(text, language)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_word_is_listed_twice(language):
    words = Counter(read_keywords(language)["exceptions"])
    for group in read_keywords(language)["groups"]:
        assert group["reason"]
        words.update(group["words"])
    assert set(words.values()) == {1}
    # YAML reads a bare off or yes as a truth value.
    for word in words:
        assert isinstance(word, str)
        assert word == word.strip().lower() != ""


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_word_is_found_where_it_stands_alone(language):
    anywhere, after_number, _ = words_of(language)
    for word in anywhere:
        assert keywords(f"，{word}，", language) == [word]
    for word in after_number:
        assert keywords(f"，3{word}，", language) == [word]
