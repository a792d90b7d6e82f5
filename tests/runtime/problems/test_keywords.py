import re
from collections import Counter

import pytest

from hf_mwp.runtime.problems import find_keywords
from hf_mwp.runtime.problems.keywords import read_keywords


def found(text, language="zh"):
    return [text[start:end] for start, end in find_keywords(text, language)]


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("比去年多20%，一共多少元？", ["比", "去年", "多", "一共", "多少", "元"]),
        ("小明比小红多4个苹果，两人一共有多少个？", ["比", "多", "个", "人", "一共", "多少", "个"]),
        ("用去[NUM]吨，还剩全部的(3/8)", ["用去", "吨", "还剩", "全部"]),
        ("平均每小时行80千米", ["平均每", "小时", "千米"]),
        ("求长方形的面积", ["求", "长方形", "面积"]),
        ("5 米，5　米，5  米", ["米", "米"]),
        ("大米，小米，个子，本来，天气", []),
        ("3天气温", []),
        ("足球比赛中许多少先队员参加，商店买商品", []),
        ("2.5kg，3KG，kgs，5cm2，80km/h", ["kg", "KG", "cm2", "km/h"]),
        ("", []),
    ],
)
def test_chinese(text, keywords):
    assert found(text) == keywords


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        (
            "She has twice as many apples as Tom. How many MORE apples?",
            ["twice as many", "How many MORE"],
        ),
        ("Each of the 5 bags cost 3 dollars", ["Each", "of the", "bags", "cost", "dollars"]),
        ("reach, peach, perimeters, lefty, costly", []),
        ("She bought bags, 3 bags", ["bought", "bags"]),
        ("[NUM] kg and kg", ["kg"]),
        ("It is 20% off", ["off"]),
        ("She took off her hat after school", []),
    ],
)
def test_english(text, keywords):
    assert found(text, "en") == keywords


def naive(text, language):
    """Tries every word at every place."""
    groups = read_keywords(language)["groups"]
    entries = [(word, group.get("after_number", False)) for group in groups for word in group["words"]]
    exceptions = set(read_keywords(language)["exceptions"])
    everywhere = {word for word, after in entries if not after} | exceptions
    words = everywhere | {word for word, after in entries if after}
    counts = r"[0-9０-９%％）)\]一二两三四五六七八九十百千万亿半几每多少第这那某]"
    spans, position = [], 0
    while position < len(text):
        for word in sorted(words, key=len, reverse=True):
            end = position + len(word)
            if text[position:end].lower() != word:
                continue
            if word[-1].isascii() and re.match("[a-z]", text[end : end + 1], flags=re.IGNORECASE):
                continue
            before = text[:position]
            if word not in everywhere and not re.search(counts + "[ \u3000]?$", before):
                continue
            if word in everywhere and word[0].isascii() and re.search("[a-z]$", before, flags=re.IGNORECASE):
                continue
            if word not in exceptions:
                spans.append((position, end))
            position = end
            break
        else:
            position += 1
    return spans


TEXTS = {
    "zh": [
        "甲乙两人同时从相距280千米的两地相向而行，甲每小时行60km，经过几小时相遇？",
        "商店运来一批水果，第1天卖出(2/5)，第二天比第一天多卖出20%，还剩 30 千克，这批水果一共多少千克？",
        "学校举行数学比赛，共20道题，做对1题得5分，小明得了76分，他做对了几题？",
        "一个圆柱的底面半径是3厘米，高是10 cm，它的体积是多少立方厘米？",
    ],
    "en": [
        "A restaurant sold 6 slices of pie during lunch and 5 more during dinner. How many slices in all?",
        "John runs 3 miles per hour, twice as fast as Mary; she took off at 5 pm. How far is it altogether?",
    ],
}


@pytest.mark.parametrize(("language", "text"), [(language, text) for language in TEXTS for text in TEXTS[language]])
def test_the_longest_word_at_each_place_is_found(language, text):
    spans = find_keywords(text, language)
    assert spans and spans == naive(text, language)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_lists(language):
    groups = read_keywords(language)["groups"]
    assert all({"name", "reason", "words"} <= group.keys() and len(group["reason"]) > 20 for group in groups)
    assert {name for group in groups for name in group} <= {"name", "reason", "words", "after_number"}
    names = [group["name"] for group in groups]
    wanted = {"comparison", "totals", "remainder", "shares", "rates", "questions", "units", "measures"}
    assert len(set(names)) == len(names) and wanted <= set(names)
    words = Counter(word for group in groups for word in group["words"])
    # YAML reads a bare off or yes as a truth value.
    assert all(isinstance(word, str) and word == word.strip().lower() != "" for word in words)
    assert max(words.values()) == 1, [word for word in words if words[word] > 1]
    exceptions = read_keywords(language)["exceptions"]
    assert len(set(exceptions)) == len(exceptions) and not words.keys() & set(exceptions)
    assert all(any(word in exception for word in words) for exception in exceptions)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_word_is_found_where_it_stands_alone(language):
    for group in read_keywords(language)["groups"]:
        for word in group["words"]:
            text = f"，3{word}，" if group.get("after_number") else f"，{word}，"
            assert found(text, language) == [word], group["name"]


def test_the_lists_go_into_the_wheel(repository):
    setup = (repository / "setup.cfg").read_text(encoding="utf-8")
    assert re.search(r"\[options\.package_data\]\n(?:.+\n)*hf_mwp\.runtime\.problems =\n    \*\.yaml", setup)
