import pytest

from hf_mwp.commands.terminal.console import make_console, print_solution
from hf_mwp.commands.web_app.server import _shown_answer
from hf_mwp.runtime.answer import Answer, Beam, answer_records
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.percent_answers import percent_answer
from hf_mwp.runtime.problems import MathWordProblem


@pytest.mark.parametrize(
    ("text", "language", "infix", "percentage"),
    [
        ("250人，达标235人，达标率是百分之几？", "zh", "N1/N0", "94%"),
        ("3人中有1人，占百分之多少？", "zh", "N1/N0", "33.33%"),
        ("250人，达标235人，达标率是多少？", "zh", "N1/N0", None),
        ("18 of 24 answers were right. What percent is that?", "en", "N0/N1*100", "75%"),
        ("18 of 24 answers were right. What percent is that?", "en", "100*N0/N1", "75%"),
        ("18 of 24 answers were right. What percent is that?", "en", "N0/N1", "75%"),
        ("30% of it is used. What percentage is left?", "en", "100-30", "70%"),
        ("18 of 24 answers were right. What percent is that?", "en", "N0*N1", None),
        ("18 of 24 answers were right. What percent is that?", "en", "N0/(N1-N1)", None),
        ("A price of 40 rose by 25%. What is it?", "en", "N0*(1+N1)", None),
    ],
)
def test_percentages(text, language, infix, percentage):
    problem = MathWordProblem(text, language=language)
    assert percent_answer(Expression.from_infix(infix), problem) == percentage


@pytest.fixture
def record():
    problem = MathWordProblem("250人，达标235人，达标率是百分之几？")
    beam = Beam(((Expression.from_infix("N1/N0"), -0.1),), unknown_share=0.0)
    return answer_records(Answer(problem, beam))[0]


def test_record_has_the_percentage(record):
    assert (record["answer"], record["percent"]) == (0.94, "94%")


def test_command_and_page_show_the_percentage(record):
    console = make_console()
    with console.capture() as output:
        print_solution(console, "题目", [record])
    assert "= 47/50 = 0.94 = 94%" in output.get()
    assert _shown_answer(record, 1.0)["decimal"] == "= 0.94 = 94%"
