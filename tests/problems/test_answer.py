from fractions import Fraction

import pytest

from hf_mwp.problems import answer_half_unit, answer_value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("20", 20),
        ("880.0", 880),
        ("((7)/(4))", Fraction(7, 4)),
        ("7((2)/(3))", Fraction(23, 3)),
        ("-7((2)/(3))", Fraction(-23, 3)),
        ("23(1/3)", Fraction(70, 3)),
        ("(11/20)", Fraction(11, 20)),
        ("10%", Fraction(1, 10)),
        ("１０％", Fraction(1, 10)),
        ("1/2", Fraction(1, 2)),
        ("3:2", Fraction(3, 2)),
        ("1200/(1+5%)", Fraction(24000, 21)),
        ("9 (apples)", 9),
        ("1/2 (cup)", Fraction(1, 2)),
        ("$1,234.50", Fraction(2469, 2)),
        ("-$5.50", Fraction(-11, 2)),
        ("3,409 (people)", 3409),
        ("7 r4", 7),
        ("[5, 3]", 5),
        ("5 ; 3", 5),
        ("x=-5", -5),
        ("-5", -5),
        ("5千克", 5),
        ("x=5", 5),
        ("2_1/5", Fraction(11, 5)),
        ("2 1/5 (cups)", Fraction(11, 5)),
        ("-11_2/3", Fraction(-35, 3)),
        ("2:3 (red to blue)", Fraction(2, 3)),
        ("3.5米(350厘米)", Fraction(7, 2)),
        ("7……4", 7),
        ("7余4", 7),
        ("1.2*10^3", 1200),
        ("约 3.5 米", Fraction(7, 2)),
        ("", None),
        ("没有", None),
        ("9" * 600, None),
        ("1/0", None),
        ("2小时30分", None),
        ("2 小时 30 分", None),
        ("5元3角", None),
        ("1.2e3", None),
        ("1.2E-3米", None),
        ("2:30 pm", None),
        ("3 1/0", None),
        ("1.2.3", None),
        ("5±1", None),
        ("x1=5", None),
        ("7 r", 7),
        ("½", Fraction(1, 2)),
        ("1½", Fraction(3, 2)),
        ("-2 ½ 千米", Fraction(-5, 2)),
        ("１２⅓", Fraction(37, 3)),
        ("x=¾", Fraction(3, 4)),
        ("½+2", Fraction(5, 2)),
        ("9 (½ of them)", 9),
        ("2小时½", None),
        ("1.5½", None),
        ("5(½)", None),
    ],
)
def test_answer_value(answer, value):
    assert answer_value(answer) == value


@pytest.mark.parametrize(
    ("answer", "half_unit"),
    [
        ("20", Fraction(1, 2)),
        ("3.14", Fraction(1, 200)),
        ("-0.5", Fraction(1, 20)),
        ("880.0", Fraction(1, 20)),
        ("20%", Fraction(1, 200)),
        ("12.5%", Fraction(1, 2000)),
        ("2/3", Fraction(1, 6)),
        ("(11/20)", Fraction(1, 40)),
        ("((7)/(4))", Fraction(1, 8)),
        ("7((2)/(3))", Fraction(1, 6)),
        ("2_1/5", Fraction(1, 10)),
        ("1⅖", Fraction(1, 10)),
        ("1,234.50", Fraction(1, 200)),
        ("约 3.5 米", Fraction(1, 20)),
        ("3:2", None),
        ("1200/(1+5%)", None),
        ("1.2e3", None),
        ("没有", None),
    ],
)
def test_half_a_unit_of_the_last_digit(answer, half_unit):
    assert answer_half_unit(answer) == half_unit
