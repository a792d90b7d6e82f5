import pytest

from hf_mwp.problems import MathWordProblem, refusal


@pytest.mark.parametrize(
    ("text", "language", "numerals", "message"),
    [
        ("小明有4个苹果", "zh", None, None),
        ("Seven apples", "en", None, None),
        ("三个苹果", "zh", True, None),
        ("", "zh", None, "empty"),
        (" \n", "zh", None, "empty"),
        ("没有数字", "zh", None, "number"),
        ("三个苹果", "zh", None, "number"),
        ("Seven apples", "en", False, "number"),
    ],
)
def test_what_is_refused(text, language, numerals, message):
    told = refusal(MathWordProblem(text, language=language, numerals=numerals))
    assert told is None if message is None else message in told
