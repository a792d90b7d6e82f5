"""Equations in the replies of language models."""

import pytest

from hf_mwp import MathWordProblem
from hf_mwp.solver.labelling.replies import CONSTANTS, read_reply


APPLES = MathWordProblem("小明有4个苹果和2个梨，一共有多少个水果？")
PRICE = MathWordProblem("A coat costs $1,250. The price is reduced by 20%. What is it?", language="en")
COMPUTER = MathWordProblem("电脑原来每台售价7000元，现在降价(1/5)，现在每台售价多少元？")
ROPE = MathWordProblem("A rope is 30 meters long. Ben cuts off 1/5 of it. How many are left?", language="en")


def equation(reply, problem=APPLES):
    expression = read_reply(reply, problem)
    return None if expression is None else expression.to_infix()


@pytest.mark.parametrize(
    "reply",
    [
        "4+2",
        "4 + 2",
        "x=4+2",
        "x = 4 + 2 = 6",
        "4+2=6",
        "4+2=6个",
        "4+2=6（个水果）。",
        "４＋２",
        "`4+2`",
        "**4+2**",
        "$4 + 2$",
        "\\(4+2\\)",
        "\\boxed{4+2}",
        "算式：4+2",
        "算式: 4+2=6",
        "**列式**：4+2",
        "Equation: 4+2",
        "**Equation:** 4+2",
        "The answer is 4+2",
        "The final answer is: 4+2.",
        "先算苹果，再算梨。\n\n算式：4+2\n答：一共有6个水果。",
        "<think>4-2? No, 4*2.</think>\n4+2",
        "4*2 might do.</think>4+2",
        "Equation: 4-2\nThat is wrong.\nEquation: 4+2",
        "4+2\n4+2",
        "```\n4+2\n```",
    ],
)
def test_equation_of_a_reply_is_read(reply):
    assert equation(reply) == "N0+N1"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "6",
        "一共有6个水果。",
        "He has 4 apples and 2 pears, so the sum of 4 and 2.",
        "小明一共有 4+2 个水果",  # an equation in a sentence may be only a step
        "4个+2个",
        "4+2\n6*2",  # steps
        "x+2=4",
        "x*2=4",
        "4+2=x+1",
        "4+y",
        "4+2+17",  # 17 is neither in the text nor a common constant
        "17+1",
        "1+1",  # no number of the text
        "4",
        "4/(2-2)",
        "9^9^9^9*4",
        "4+",
        "((4+2)",
        "__import__('os').system('true')",
        "4+2; import os",
        "<think>4+2",
        "4+2" * 200,
        "+".join(["4"] * 8000),
        "x" * 30_000 + "\n4+2",
        "=" * 900,
        " " * 20_000,
    ],
)
def test_reply_without_a_usable_equation_is_refused(reply):
    assert equation(reply) is None


@pytest.mark.parametrize(
    ("reply", "problem", "expected"),
    [
        ("1250*(1-20%)", PRICE, "N0*(1-N1)"),
        ("1,250 * (1 - 0.2)", PRICE, "N0*(1-N1)"),
        ("$1250 \\times (1-20\\%)$", PRICE, "N0*(1-N1)"),
        ("1250*(1-20/100)", PRICE, "N0*(1-N1)"),
        ("1250-1250*20/100", PRICE, "N0-N0*N1"),
        ("1250*(100-20)/100", PRICE, None),  # 20 is not 20%
        ("30*(1-1/5)", ROPE, "N0*(1-N1)"),
        ("30 \\times \\left(1 - \\frac{1}{5}\\right)", ROPE, "N0*(1-N1)"),
        ("7000*(1-1/5)", COMPUTER, "N0*(1-N1)"),
        ("7000*(1-(1/5))", COMPUTER, "N0*(1-N1)"),
        ("7000*(1/5)", COMPUTER, "N0*N1"),
        ("7000 - 7000 * 1 / 5", COMPUTER, "N0-N0*N1"),
        ("(1/5+1)*7000", COMPUTER, "(N1+1)*N0"),
        ("7000/1/5", COMPUTER, "N0/1/5"),
        ("7000*1/5^2", COMPUTER, "N0*1/5^2"),
        ("7000*1/50", COMPUTER, None),
        ("7000*11/5", COMPUTER, "N0*11/5"),
        ("30÷2×3.14", ROPE, "N0/2*3.14"),
    ],
)
def test_numbers_are_those_of_the_text_or_constants(reply, problem, expected):
    assert equation(reply, problem) == expected


def test_constants_are_common_numbers():
    assert {1, 7, 12, 60, 100} <= CONSTANTS and 17 not in CONSTANTS
