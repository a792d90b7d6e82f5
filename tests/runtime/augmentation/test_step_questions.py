import pytest

from hf_mwp.runtime.augmentation.step_questions import ask_steps
from hf_mwp.runtime.problems import MathWordProblem


CLIPS = "Natalia sold 48 clips in April, and half as many in May."


def questions(text, *lines):
    """The problems made of the steps of a worked answer."""
    problem = MathWordProblem(text, answer="1", id="7", language="en")
    new_problems = list(ask_steps(problem, "\n".join([*lines, "In all <<1*1=1>>1."])))
    for new in new_problems:
        assert new.agrees()
        assert new.language == "en"
    return new_problems


def rows(context, *lines):
    """The questions after a context, each with its equation."""
    new_problems = questions(f"{context} How many?", *lines)
    return [(new.text.removeprefix(f"{context} "), new.equation) for new in new_problems]


def test_question_of_a_step():
    line = "Natalia sold 48/2 = <<48/2=24>>24 clips in May."
    (new,) = questions(f"{CLIPS} How many clips did she sell in all?", line)
    assert new.text == f"{CLIPS} How many clips did Natalia sell in May?"
    assert (new.id, new.equation, new.answer) == ("7-S1", "x=48/2", "24")


@pytest.mark.parametrize(
    ("line", "question"),
    [
        # The verb is known.
        ("So he has $3 x 4 = $<<3*4=12>>12 in all.", "How much does he have in all?"),
        # The verb is not known, or the number is the subject.
        ("There are 3*4=<<3*4=12>>12 pages left.", "How many pages are there left?"),
        ("Thus, the total is <<3*4=12>>12 dollars.", "The total is how many dollars?"),
        ("This means that the cost was $<<3*4=12>>12.", "The cost was how much?"),
        ("The share is 3*4 = <<3*4=12>>12% of all.", "The share is what percentage of all?"),
        ("<<3*4=12>>12 of the box x pens are red", "How many of the box x pens are red?"),
    ],
)
def test_wording_of_the_question(line, question):
    assert rows("There are 3 boxes of 4.", line) == [(question, "x=3*4")]


def test_equation_has_only_the_steps_that_it_needs():
    context = "Al has 5 red and 6 blue pens. Bo has 2 bags of 9 pens, and loses 4 pens."
    lines = ["Al has <<5+6=11>>11 pens.", "Bo has <<2*9=18>>18 pens.", "Bo keeps <<18-4=14>>14 pens."]
    assert rows(context, *lines) == [
        ("How many pens does Al have?", "x=5+6"),
        ("How many pens does Bo have?", "x=2*9"),
        ("How many pens does Bo keep?", "x=2*9-4"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Each of the 3 boxes holds <<4*3=12>>12 pens.",  # another number
        "She has <<3+4=7>>7 red and <<3*4=12>>12 blue pens.",  # two steps
        "It is <<3*4=12>>12.",  # too few words
        "The pens are red.",  # no step
        "The total is <<3*17=51>>51 dollars.",  # 17 is not in the text
        "The total is <<3*4=13>>13 dollars.",  # a wrong result
    ],
)
def test_line_without_a_question(line):
    assert rows("There are 3 boxes of 4.", line) == []


BOX = "A box has 12 pens."
BOX_LINE = "The boxes have 12*5=<<12*5=60>>60 pens."


def test_number_of_the_question_alone_is_not_used():
    assert questions(f"{BOX} If Al has 5 boxes, how many pens has he?", BOX_LINE) == []


@pytest.mark.parametrize(
    ("text", "line", "equation"),
    [
        (f"{BOX} Al has 5 boxes. If he has 5 boxes, how many pens has he?", BOX_LINE, "x=12*5"),
        # The number 1 is also written as 100%.
        ("All 100% of 12 pens are new. How many pens?", "There are 12-1=<<12-1=11>>11 pens left.", "x=12-1"),
    ],
)
def test_number_of_the_context_is_used(text, line, equation):
    (new,) = questions(text, line)
    assert new.equation == equation


def test_question_with_two_answers_is_left_out():
    context = "Al has 2 bags of 3 pens and 4 boxes of 5 pens."
    line = "Al has <<2*3=6>>6 pens."
    assert questions(f"{context} How many?", line, "Al has <<4*5=20>>20 pens.") == []
    assert questions(f"{context} How many pens does Al have?", line) == []


@pytest.mark.parametrize(
    "text",
    [
        "How many pens are in 3 boxes of 4?",  # no context
        "How many are 3 and 4? How many are 5 and 6?",  # two questions
        "Tell how many pens there are. 3 boxes have 4 pens. How many?",
        "There are 3 boxes of 4. Count them.",  # no question
    ],
)
def test_problem_without_a_context_gives_none(text):
    assert questions(text, "There are <<3*4=12>>12 pens in them.") == []


def test_empty_answer_gives_none():
    assert list(ask_steps(MathWordProblem("3 and 4 pens. How many?", language="en"), "")) == []
