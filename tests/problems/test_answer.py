from fractions import Fraction

import pytest

from hf_mwp.problems import answer_value


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
        ("3,409 (people)", 3409),
        ("7 r4", 7),
        ("[5, 3]", 5),
        ("5 ; 3", 5),
        ("x=-5", -5),
        ("-5", -5),
        ("1/0", 1),
        ("约 3.5 米", Fraction(7, 2)),
        ("", None),
        ("没有", None),
        ("9" * 600, None),
    ],
)
def test_answer_value(answer, value):
    assert answer_value(answer) == value
