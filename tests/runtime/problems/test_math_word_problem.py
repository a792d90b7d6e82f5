import pickle
from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from tests.tiny import rebuilt


@pytest.mark.parametrize(
    ("text", "equation", "aligned"),
    [
        ("(3/8)和3、8", "x=(3/8)+3/8", "N0+N1/N2"),
        ("3、8", "x=(3/8)", "N0/N1"),
        ("1(3/4)吨", "x=1(3/4)*2", "N0*2"),
        ("20%和100", "x=100*(1-20%)", "N1*(1-N0)"),
        ("3,409 of 5", "3409-5.0", "N0-N1"),
        # The same value in another kind, unless it is a whole number.
        ("20%和100", "x=100*0.2", "N1*N0"),
        ("1天用20%", "x=100%-20%", "1-N1"),
        ("5%和5", "x=5*5%", "N1*N0"),
        # A number that occurs twice: the first one.
        ("3个和3个", "x=3+3", "N0+N0"),
        # Constants have one spelling.
        ("半径2", "x=3.140*2^2.0", "3.14*N0^N0"),
        ("8人", "x=8*200%", "N0*2"),
        ("8人", "x=8/2.50+1(1/3)", "N0/2.5+(4/3)"),
        ("4个和2个", "N1-N0", "N1-N0"),
        ("有3个", "x=3*17", "N0*17"),
    ],
)
def test_equations_are_aligned_with_the_text(text, equation, aligned):
    assert str(MathWordProblem(text, equation).expression) == aligned


def test_equations_are_aligned_with_number_words():
    problem = MathWordProblem("Seven red and two green, a dozen more.", "7+2+12=21", language="en")
    assert problem.numbers == ("7", "2", "12")
    assert problem.expression.to_infix() == "N0+N1+N2"
    assert rebuilt(problem.masked) == problem.text


def test_a_number_that_occurs_twice_keeps_both_occurrences():
    problem = MathWordProblem("3个、20%、3个、0.2、3.0个", "x=3*20%")
    assert problem.numbers == ("3", "20%", "3", "0.2", "3.0")
    assert problem.values == (3, Fraction(1, 5), 3, Fraction(1, 5), 3)
    assert problem.number_groups == (0, 1, 0, 3, 0)
    assert problem.expression.to_prefix() == ["*", "N0", "N1"]


def test_masked_key_leaves_out_numbers_width_and_white_space():
    assert MathWordProblem("小明有４个 苹果，买2个．").masked_key == "小明有[NUM]个苹果，买[NUM]个."
    assert MathWordProblem("小明有15个苹果，买 (3/8) 个．").masked_key == "小明有[NUM]个苹果，买[NUM]个."


@pytest.mark.parametrize(
    ("text", "equation", "answer", "agrees"),
    [
        ("44和20", "x=44*20", "880", True),
        ("44和20", "x=44*20", "880.05", True),  # 880.05 * 1e-4 = 0.088
        ("44和20", "x=44*20", "880.1", False),
        ("1和3", "x=1/3", "0.3333", True),
        ("1和3", "x=1/3", "0.333", False),
        ("7和4", "x=7/4", "((7)/(4))", True),
        ("7和4", "x=7/4", None, False),
        ("7和4", None, "3", False),
        ("7和0", "x=7/0", "3", False),
        ("7和4", "x=7千米", "7", False),
        ("2和0.5", "x=2^0.5", "1.41421", True),
    ],
)
def test_agreement_of_equation_and_answer(text, equation, answer, agrees):
    assert MathWordProblem(text, equation, answer).agrees() is agrees


def test_tolerance_of_the_agreement():
    assert MathWordProblem("1和3", "x=1/3", "0.3").agrees(tolerance=0.1)


@pytest.mark.parametrize("equation", [None, "", "  "])
def test_expression_without_an_equation_names_the_problem(equation):
    with pytest.raises(ProblemError, match="'p7'.*equation"):
        MathWordProblem("3个", equation, id="p7").expression  # noqa: B018


@pytest.mark.parametrize("equation", ["x=3@4", "x=80千米/小时", "x+3=4"])
def test_invalid_equation_is_refused(equation):
    with pytest.raises(ExpressionError):
        MathWordProblem("3和4", equation).expression  # noqa: B018


def test_empty_text_has_no_numbers():
    empty = MathWordProblem("")
    assert (empty.numbers, empty.number_groups, empty.masked_key, empty.answer_value) == ((), (), "", None)


def test_text_with_many_numbers():
    problem = MathWordProblem("、".join(map(str, range(200))), "x=" + "+".join(map(str, range(100))), "4950")
    assert problem.agrees()
    assert problem.number_groups == tuple(range(200))


def test_problems_with_equal_fields_are_equal():
    problem = MathWordProblem("4个和2个", "x=4+2", "6", id="1")
    assert problem == MathWordProblem("4个和2个", "x=4+2", "6", id="1")
    assert problem.expression.evaluate(problem.values) == 6
    assert pickle.loads(pickle.dumps(problem)) == problem  # noqa: S301 (worker processes send problems this way)
    with pytest.raises(AttributeError):
        problem.text = "other"


@pytest.mark.parametrize(("name", "value"), [("equation", 6), ("answer", ["6"]), ("text", None)])
def test_field_that_is_no_string_is_named(name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be a string"):
        MathWordProblem(**{"text": "4 and 2", name: value})
