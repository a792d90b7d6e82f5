import pytest

from hf_mwp.problems import MathWordProblem, ProblemError, refusal
from hf_mwp.problems.math_word_problem import MAX_TEXT_LENGTH


@pytest.mark.parametrize(
    ("text", "language", "parse_number_words", "message"),
    [
        ("小明有4个苹果", "zh", None, None),
        ("Seven apples", "en", None, None),
        ("三个苹果", "zh", None, None),
        ("", "zh", None, "empty"),
        (" \n", "zh", None, "empty"),
        ("没有数字", "zh", None, "number"),
        ("三个苹果", "zh", False, "in digits"),
        ("Seven apples", "en", False, "number"),
        ("有٣个苹果", "zh", None, "digits 0 to 9"),
        ("4个" + "苹" * (MAX_TEXT_LENGTH - 2), "zh", None, None),
        ("4个" + "苹" * (MAX_TEXT_LENGTH - 1), "zh", None, "100,000 characters"),
    ],
)
def test_what_is_refused(text, language, parse_number_words, message):
    told = refusal(MathWordProblem(text, language=language, parse_number_words=parse_number_words))
    assert told is None if message is None else message in told


def test_nothing_is_looked_for_in_a_text_that_is_too_long():
    problem = MathWordProblem("4" * (MAX_TEXT_LENGTH + 1), id="long")
    for name in ("masked", "numbers", "masked_key"):
        with pytest.raises(ProblemError, match="100,000 characters"):
            getattr(problem, name)
