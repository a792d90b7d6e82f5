import pytest

from hf_mwp.runtime.problems.clauses import find_question


def question(text, language):
    clauses, index = find_question(text, language)
    return text[slice(*clauses[index])]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "小明有[NUM]个苹果，一共有多少个？", "一共有多少个？"),
        ("zh", "一共有多少人不知道，女生[NUM]人，男生多少人？（用方程解）", "男生多少人？"),
        ("zh", "甲[NUM]元。乙[NUM]元。", "乙[NUM]元"),
        ("zh", "[NUM]加[NUM]，和=", "和="),
        ("en", "A pen costs [NUM] dollars. How much do [NUM] pens cost? Think.", " How much do [NUM] pens cost?"),
        ("en", "Tom shows many pens, [NUM] each.", " [NUM] each"),
        ("en", "Find the sum of 3.5 and [NUM]", "Find the sum of 3.5 and [NUM]"),
    ],
)
def test_last_clause_that_asks_is_the_question(language, text, expected):
    assert question(text, language) == expected


@pytest.mark.parametrize("text", ["", " ", "。。", "\n"])
def test_a_blank_text_has_no_clause(text):
    assert find_question(text) == ([], -1)
