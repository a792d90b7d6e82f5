import pytest

from hf_mwp.runtime.problems.clauses import find_question
from hf_mwp.utils.language import language_of


def question(text):
    clauses, index = find_question(text, language_of(text))
    return text[slice(*clauses[index])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("小明有[NUM]个苹果，一共有多少个？", "一共有多少个？"),
        ("一共有多少人不知道，女生[NUM]人，男生多少人？（用方程解）", "男生多少人？"),
        ("甲[NUM]元。乙[NUM]元。", "乙[NUM]元"),
        ("[NUM]加[NUM]，和=", "和="),
        ("A pen costs [NUM] dollars. How much do [NUM] pens cost? Think.", " How much do [NUM] pens cost?"),
        ("Tom shows many pens, [NUM] each.", " [NUM] each"),
        ("Find the sum of 3.5 and [NUM]", "Find the sum of 3.5 and [NUM]"),
    ],
)
def test_last_clause_that_asks_is_the_question(text, expected):
    assert question(text) == expected


@pytest.mark.parametrize("text", ["", " ", "。。", "\n"])
def test_a_blank_text_has_no_clause(text):
    assert find_question(text) == ([], -1)
