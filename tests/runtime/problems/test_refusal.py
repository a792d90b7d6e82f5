import pytest

from hf_mwp.runtime.problems import MathWordProblem, ProblemError, refusal
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH
from hf_mwp.runtime.problems.zero_divisors import zero_division
from hf_mwp.utils.language import language_of


@pytest.mark.parametrize(
    ("text", "parse_number_words", "message"),
    [
        ("小明有4个苹果", None, None),
        ("Seven apples", None, None),
        ("", None, "empty"),
        (" \n", None, "empty"),
        ("没有数字", None, "number"),
        ("三个苹果", False, "in digits"),
        ("Seven apples", False, "number"),
        ("有٣个苹果", None, "digits 0 to 9"),
        ("4个" + "苹" * (MAX_TEXT_LENGTH - 2), None, None),
        ("4个" + "苹" * (MAX_TEXT_LENGTH - 1), None, "100,000 characters"),
    ],
)
def test_reason_of_a_refusal(text, parse_number_words, message):
    reason = refusal(MathWordProblem(text, language=language_of(text), parse_number_words=parse_number_words))
    if message is None:
        assert reason is None
    else:
        assert message in reason


@pytest.mark.parametrize(
    ("text", "division"),
    [
        ("1/0是多少", "1/0"),
        ("0/0等于多少", "0/0"),
        ("求５ ÷ ０.0 = ?", "5 / 0.0"),
        ("5/(0)是多少", "5/(0)"),
        ("求100%/0", "100%/0"),
        ("求(2+3)/0", ")/0"),
        ("5除以0等于几", "除以0"),
        ("0除5等于几", "0除5"),
        ("5被0除等于几", "被0除"),
        ("What is 5 divided by 0?", "divided by 0"),
        ("Divide 5 apples by zero.", "Divide 5 apples by zero"),
        ("0除以5等于几", None),
        ("5除0等于几", None),
        ("求0/5", None),
        ("求5÷0.5", None),
        ("5除以0.05", None),
        ("5除以零点五和2", None),
        ("0以外的数，0除外，有5个", None),
        ("比分是5:0，还剩几分钟", None),
        ("On 10/05/2020, Tom had 5 apples.", None),
        ("It is 5 degrees over 0.", None),
    ],
)
def test_written_division_by_zero_is_refused(text, division):
    reason = refusal(MathWordProblem(text, language=language_of(text)))
    if division is None:
        assert reason is None
    else:
        assert f"by zero ({division})" in reason


@pytest.mark.parametrize("piece", ["1/", "divide ", "dividing by ", "0", "1", "1.", "(", "/ ", " "])
def test_the_search_for_divisions_by_zero_is_linear(piece):
    assert zero_division("5" + piece * (MAX_TEXT_LENGTH // len(piece))) is None


def test_text_that_is_too_long_is_not_read():
    problem = MathWordProblem("4" * (MAX_TEXT_LENGTH + 1), id="long")
    for name in ("masked", "numbers", "masked_key"):
        with pytest.raises(ProblemError, match="100,000 characters"):
            getattr(problem, name)
