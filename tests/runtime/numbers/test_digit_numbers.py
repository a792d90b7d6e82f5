from fractions import Fraction

import pytest

from hf_mwp.runtime.numbers.masked_text import mask_numbers
from hf_mwp.runtime.problems import MathWordProblem, find_numbers
from hf_mwp.utils.language import language_of


def literals(text):
    return [mention.literal for mention in find_numbers(text, language_of(text))]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("He ate 1/2 of 12", "(1/2) 12"),
        ("1 1/2 pies, 3½ cakes, ¼ tart", "1(1/2) 3(1/2) (1/4)"),
        ("a 3/4-inch pipe, 1/2kg", "(3/4) (1/2)"),
        ("In 2004 1/2 of them", "2004 (1/2)"),
        ("3 5/4", "3 (5/4)"),
        ("2 + 1/2 and 1/2=", "2 1 2 1 2"),
        ("on 3/4/2020, 05/04, 5/0", "3 4 2020 05 04 5 0"),
        ("the quotient of 12/4", "12 4"),
        ("10 / 2, 1/2x, 33333/66666", "10 2 1 2 33333 66666"),
        ("3:45 and 3:2", "3 45 3 2"),
        ("1 and 1/2 cups, 3/4 and 3/5", "1(1/2) (3/4) (3/5)"),
        ("2 and a half hours", "2(1/2)"),
        ("5-and-one-half", "5(1/2)"),
        ("the sum of 3 and 1/2", "3 (1/2)"),
        ("between 4 and 1/2", "4 (1/2)"),
        ("3 and a half dozen", "42"),
        ("已卖的是剩下的2/3，还剩全程的9/16", "(2/3) (9/16)"),
        ("占 总数 的 1 / 3 ，", "(1/3)"),
        ("长1又1/2米，宽 2 又 3/4 米，高8又(1/2)米", "1(1/2) 2(3/4) 8(1/2)"),
        ("先卖1/3，又20支，后卖5又3/2", "(1/3) 20 5 (3/2)"),
        ("用去1 1/2小时，比面粉的３／４少", "1(1/2) (3/4)"),
        ("404/2的商，12/4得多少，594/5商是118", "404 2 12 4 594 5 118"),
        ("62与5的差乘8/4的商，口算300/6时", "62 5 8 4 300 6"),
        ("155/20与18的差，商=", "155 20 18"),
        ("求150/(7-90/15)", "150 7 90 15"),
        ("求（58+16）-24/6", "58 16 24 6"),
        ("男生占8分之5，长1又2分之1米，１又２分之１", "(5/8) 1(1/2) 1(1/2)"),
        ("降价百分之20，百分之12.5，0分之1", "20% 12.5% 0 1"),
    ],
)
def test_bare_fractions_and_divisions(text, numbers):
    assert literals(text) == numbers.split()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("-5 degrees\n-6 degrees", "-5 -6"),
        ("The temperature is −5, (-3) or between -11 and 2", "-5 -3 -11 2"),
        ("the sum of -1/2, -1 1/2 and -20%", "-(1/2) -1(1/2) -20%"),
        ("5-3, pages 10-15, x-5, Alpha-19, 75%-80%", "5 3 10 15 5 19 75% 80%"),
        ("- 5 apples, 3 - 2", "5 3 2"),
        ("He buys:\n- 5 pens,\r\n- 3 books and\n- 2 bags", "5 3 2"),
        ("What is 3 + -5, 7 - -2, 4%+−1/2 or (1)--6?", "3 -5 7 -2 4% -(1/2) 1 6"),
        ("about -5 degrees, it reached -6, now -7; pages 10-15", "-5 -6 -7 10 15"),
        ("海拔-155米，降到了-3度，约-2度，到了3-5年级", "-155 -3 -2 3 5"),
        ("三天的气温：\n-5℃，\n- 3℃", "-5 3"),
        ("最低气温-5℃，最高－２℃，成绩记作：-3分", "-5 -2 -3"),
        ("气温 是 - 4 ℃ ，和 为 -60", "-4 -60"),
        ("-$20, a debt of −$1,234.50; it is $-30, US$-40 or - €.5", "-20 -1,234.50 -30 -40 -.5"),
        ("Tom had -$20, x -$7, a 3 -$2", "-20 7 3 2"),
        ("$5-$3, $5 - $3, 5$-3$, 5 $-3\n- $4", "5 3 5 3 5 3 5 3 4"),
        ("余额是-￥20，向左走记作$$-2$$", "-20 -2"),
        ("It shows -8 degrees, then -9°C; from 5 -7 degrees to 1-2 degrees", "-8 -9 5 7 1 2"),
        ("3与5的和-2，它的3倍-5，1-6月，(-1)^6*(-24)", "3 5 2 3 5 1 6 -1 6 -24"),
    ],
)
def test_signs(text, numbers):
    assert literals(text) == numbers.split()


@pytest.mark.parametrize("end", ["个", "a"])
def test_white_space_after_a_fraction_takes_linear_time(end):
    # Trying all ways to split the spaces would take hours.
    assert literals(f"1/2{' ' * 20_000}{end}") == ["(1/2)"]


def test_percent_sign_after_a_space():
    (mention,) = find_numbers("打折 20 ％ ，", "zh")
    assert (mention.text, mention.literal, mention.is_percent) == ("20 ％", "20％", True)
    assert mention.value == Fraction(1, 5)
    assert literals("2.5 %和7 % 3，1e3 %") == ["2.5%", "7", "3", "1000"]
    # The equations of MAWPS have 12 * 0.01 for "12 %".
    assert literals("12 % of 50") == ["12", "50"]


@pytest.mark.parametrize("start", ["求", "Add "])
def test_latex(start):
    text = start + r"$\frac{1}{2}$ + $1\dfrac{2}{3}$ = 20\%, $-\frac{3}{4}$; \frac{1}{0}"
    assert literals(text) == "(1/2) 1(2/3) 20% -(3/4) 1 0".split()


def test_thousands_after_spaces():
    assert literals("$400 000, 5 650 000") == ["400000", "5650000"]
    assert literals("在1 100中，5 0000") == ["1", "100", "5", "0000"]


@pytest.mark.parametrize("text", ["男生占8分之5", r"男生占\frac{5}{8}", "男生占5/8"])
def test_fractions_of_all_notations_are_found_in_equations(text):
    assert MathWordProblem(f"共48人，{text}", "x=48*5/8").expression.to_infix() == "N0*N1"


def test_units_of_large_numbers_remain_in_the_text():
    assert MathWordProblem("售价28万元，共2.5万元").masked.text() == "售价[NUM]万元，共[NUM]万元"
    assert MathWordProblem("共2.5亿元").masked.text() == "共[NUM]亿元"
    assert MathWordProblem("$32 million", language="en").masked.text() == "$[NUM] million"


def test_numbers_that_are_too_large_are_unreadable():
    text = "1e3 and 1.5E-2, 2e+2 but 1e999 and " + "7" * 400
    assert literals(text) == ["1000", "0.015", "200"]
    assert mask_numbers(text, "en").unreadable == ("1e999", "7" * 400)
    assert mask_numbers("3个", "zh").unreadable == ()


@pytest.mark.parametrize(
    ("text", "equation", "prefix"),
    [
        ("He ate 1/2 of 12", "12*1/2", "* N1 N0"),
        ("He ate 1/2 of 12", "12*(1/2)", "* N1 N0"),
        ("He ate 1/2 of 12", "12/2", "* N1 N0"),
        ("He ate 1/2 of 12", "12/1/2", "* / N1 1 N0"),
        ("It was -5, now it is 8 more, then 2", "8-(-5)", "- N1 N0"),
        ("It was -5, now it is 8 more, then 2", "8+5", "- N1 N0"),
        ("It was -5, now it is 8 more, then 2", "5+8*2", "- * N1 N2 N0"),
        ("It was -5, now it is 8 more, then 2", "8-5", "+ N1 N0"),
        ("It was -5 and 5, then 8", "8+5", "+ N2 N1"),
        ("The product of -2 and -15", "(-2.0)*(-15.0)", "* N0 N1"),
    ],
)
def test_equations_find_fractions_and_negative_numbers(text, equation, prefix):
    problem = MathWordProblem(text, equation, language="en")
    assert problem.expression.to_prefix() == prefix.split()
    plain = MathWordProblem("no numbers", equation, language="en")
    assert problem.expression.evaluate(problem.values) == plain.expression.evaluate()
