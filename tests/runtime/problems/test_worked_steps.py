import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.worked_steps import STEP_FAULTS, StepError, compose_steps


def compose(text, answer, steps, **options):
    problem = MathWordProblem(text, answer=answer, id="1", language="en")
    solution = " then ".join(f"<<{step}>>" for step in steps)
    return compose_steps(problem, solution, **options).to_infix()


@pytest.mark.parametrize(
    ("text", "answer", "steps", "equation", "prefix"),
    [
        ("48 in April, half in May.", "72", ["48/2=24", "48+24=72"], "48+48/2", "+ N0 / N0 2"),
        ("3 boxes of 4 and seven.", "19", ["3*4=12", "12+7=19"], "3*4+7", "+ * N0 N1 N2"),
        # A result that is used twice.
        ("2 bags of 9, twice.", "324", ["2*9=18", "18*18=324"], "2*9*(2*9)", "* * N0 N1 * N0 N1"),
        ("Costs $1,200 and $.50", "2401", ["$1200+.50=$1200.5", "1200.5*2=2,401"], "(1200+.50)*2", "* + N0 N1 2"),
        # Rounded results are used as they are computed.
        ("10 by 3 for 6", "20", ["10/3=3.33", "3.33*6=20"], "10/3*6", "* / N0 N1 N2"),
        # Sixteen is in the text, and only as a result uses all steps.
        ("2 of 16, 2 of 8.", "48", ["2*16=32", "2*8=16", "32+16=48"], "2*16+2*8", "+ * N0 N1 * N0 N3"),
        # Equal results, in one way up to their order.
        ("5+6 and 4+7", "22", ["5+6=11", "4+7=11", "11+11=22"], "5+6+(4+7)", "+ + N0 N1 + N2 N3"),
        # Percentages.
        ("20% of 50", "10", ["50*20/100=10"], "50*20%", "* N1 N0"),
        ("20% of 50", "10", [".01*20*50=10"], "20%*50", "* N0 N1"),
        ("20% of 50", "10", ["50*0.2=10"], "50*0.2", "* N1 N0"),
        ("20% of 50", "40", ["100-20=80", "50*80*.01=40"], "50*(100-20%*100)*.01", "* * N1 - 100 * N0 100 0.01"),
        ("20% more than 50", "60", ["50*1.2=60"], "50*(1+20%)", "* N1 + 1 N0"),
        ("20 percent of 50", "10", ["50*0.2=10"], "50*(20/100)", "* N1 / N0 100"),
        ("Twenty percent off 50", "40", ["50*0.8=40"], "50*(1-20/100)", "* N1 - 1 / N0 100"),
        # Fractions.
        ("3/5 of 180", "108", ["3/5*180=108"], "(3/5)*180", "* N0 N1"),
        ("1/4 of 8 and 3", "5", ["8/4=2", "3+2=5"], "3+8/4", "+ N2 * N1 N0"),
    ],
)
def test_equation_of_steps(text, answer, steps, equation, prefix):
    assert compose(text, answer, steps) == equation
    problem = MathWordProblem(text, equation, answer, language="en")
    assert problem.agrees()
    assert " ".join(problem.expression.to_prefix()) == prefix


DOUBLINGS = ["3+4=7"]
for exponent in range(12):
    DOUBLINGS.append(f"{7 << exponent}+{7 << exponent}={14 << exponent}")


@pytest.mark.parametrize(
    ("reason", "text", "answer", "steps"),
    [
        ("no_steps", "3 and 4", "7", []),
        ("no_steps", "3 and 4", "3", ["3=3"]),
        ("unreadable_step", "9 by 4", "2", ["9//4=2"]),
        ("unreadable_step", "9 by 4", "5", ["9-x=5"]),
        ("unreadable_step", "9 by 0", "5", ["9/0=5"]),
        ("wrong_step", "3 and 4", "8", ["3+4=8"]),
        ("unknown_number", "3 and 4", "20", ["3+17=20"]),
        # An expression with 16,383 nodes.
        ("unreadable_step", "3 and 4", "28672", DOUBLINGS),
        # A result that is in no step.
        ("unknown_number", "3, 4 and 9", "46", ["3+4=7", "7*2=14", "28+18=46"]),
        ("unused_step", "3 and 4", "12", ["3+4=7", "3*4=12"]),
        ("ambiguous_steps", "3, 4, 7", "21", ["3+4=7", "7+7=14", "14+7=21"]),
        ("ambiguous_steps", "1, 2, 3", "33", ["1+2=3", "3+3+3+3+3+3+3+3+3+3+3=33"]),
        ("open_steps", "3 and 4", "14", ["3+4=7"]),
        ("open_steps", "3 and 4", "several", ["3+4=7"]),
    ],
)
def test_reason_why_steps_have_no_equation(reason, text, answer, steps):
    with pytest.raises(StepError) as error:
        compose(text, answer, steps)
    assert error.value.reason == reason
    assert reason in STEP_FAULTS


def test_steps_that_the_last_one_does_not_need_are_dropped():
    assert compose("3 and 4", "12", ["3+4=7", "7*2=14", "3*4=12"], drop_unused=True) == "3*4"


def test_decimal_results_are_told_apart():
    assert compose("7 by 2, 3 by 2", "2", ["7/2=3.5", "3/2=1.5", "3.5-1.5=2"]) == "7/2-3/2"
