import pytest

from hf_mwp.runtime.augmentation.step_questions import ask_steps
from hf_mwp.runtime.problems import MathWordProblem


CLIPS = "Natalia sold 48 clips in April, and half as many in May."


def made(text, *lines):
    problem = MathWordProblem(text, answer="1", id="7", language="en")
    return [
        (new.id, new.text, new.equation, new.answer)
        for new in ask_steps(problem, "\n".join([*lines, "In all <<1*1=1>>1."]))
        if new.agrees() and new.language == "en"
    ]


def questions(context, *lines):
    return [
        (text.removeprefix(f"{context} "), equation) for _, text, equation, _ in made(f"{context} How many?", *lines)
    ]


def test_question_of_a_step():
    asked = f"{CLIPS} How many clips did Natalia sell in May?"
    lines = ["Natalia sold 48/2 = <<48/2=24>>24 clips in May."]
    assert made(f"{CLIPS} How many clips did she sell in all?", *lines) == [("7-S1", asked, "x=48/2", "24")]


@pytest.mark.parametrize(
    ("line", "question"),
    [
        # The verb is known.
        ("So he has $3 x 4 = $<<3*4=12>>12 in all.", "How much does he have in all?"),
        # The verb is not known, or the number is the subject.
        ("There are 3*4=<<3*4=12>>12 pages left.", "How many pages are there left?"),
        ("Thus, the total is <<3*4=12>>12 dollars.", "The total is how many dollars?"),
        ("This means that the cost was $<<3*4=12>>12.", "The cost was how much?"),
        ("<<3*4=12>>12 of the box x pens are red", "How many of the box x pens are red?"),
    ],
)
def test_wording(line, question):
    assert questions("There are 3 boxes of 4.", line) == [(question, "x=3*4")]


def test_percentage():
    assert questions("Of 4 pens, 3 are red.", "The share is 3/4*100 = <<3/4*100=75>>75% of all.") == [
        ("The share is what percentage of all?", "x=3/4*100")
    ]


def test_equation_has_only_the_steps_that_it_needs():
    context = "Al has 5 red and 6 blue pens. Bo has 2 bags of 9 pens, and loses 4 pens."
    lines = ["Al has <<5+6=11>>11 pens.", "Bo has <<2*9=18>>18 pens.", "Bo keeps <<18-4=14>>14 pens."]
    assert questions(context, *lines) == [
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
def test_lines_without_a_question(line):
    assert questions("There are 3 boxes of 4.", line) == []


def test_numbers_that_only_the_question_states():
    told, line = "A box has 12 pens.", "The boxes have 12*5=<<12*5=60>>60 pens."
    assert made(f"{told} If Al has 5 boxes, how many pens has he?", line) == []
    (new,) = made(f"{told} Al has 5 boxes. If he has 5 boxes, how many pens has he?", line)
    assert new[2] == "x=12*5"
    # The number 1 is also written as 100%.
    (new,) = made("All 100% of 12 pens are new. How many pens?", "There are 12-1=<<12-1=11>>11 pens left.")
    assert new[2] == "x=12-1"


def test_the_same_question_with_two_answers():
    told, lines = (
        "Al has 2 bags of 3 pens and 4 boxes of 5 pens.",
        ["Al has <<2*3=6>>6 pens.", "Al has <<4*5=20>>20 pens."],
    )
    assert made(f"{told} How many?", *lines) == []
    assert made(f"{told} How many pens does Al have?", lines[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        "How many pens are in 3 boxes of 4?",  # no context
        "How many are 3 and 4? How many are 5 and 6?",  # two questions
        "Tell how many pens there are. 3 boxes have 4 pens. How many?",
        "There are 3 boxes of 4. Count them.",  # no question
    ],
)
def test_problems_without_a_context(text):
    assert made(text, "There are <<3*4=12>>12 pens in them.") == []


def test_no_worked_answer():
    assert ask_steps(MathWordProblem("3 and 4 pens. How many?", language="en"), "") == []
