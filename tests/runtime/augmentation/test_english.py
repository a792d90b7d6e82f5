import pytest

from hf_mwp.runtime.augmentation.english_rewording import AUXILIARIES, INFLECTED
from hf_mwp.runtime.problems import MathWordProblem, reverse_operations


def reversed_rows(text, equation, answer):
    problem = MathWordProblem(text, equation, answer, language="en")
    return [(new.text, new.equation, new.answer) for new in reverse_operations(problem)]


def test_each_number_is_asked_for_in_a_question_at_the_end():
    text = "Sara picked 45 pears and Sally picked 11 pears from the tree. How many pears were picked in total?"
    assert reversed_rows(text, "45+11", "56 (pears)") == [
        (
            "Sara picked some pears and Sally picked 11 pears from the tree. 56 pears were picked in total. "
            "How many pears did Sara pick?",
            "x=56-11",
            "45",
        ),
        (
            "Sara picked 45 pears and Sally picked some pears from the tree. 56 pears were picked in total. "
            "How many pears did Sally pick from the tree?",
            "x=56-45",
            "11",
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Statements from questions.
        (
            "Al has 4 pens. How many will he have if he buys 5 more?",
            "Al has some pens. He will have 9 if he buys 5 more. How many pens does Al have?",
        ),
        (
            "Al has 4 pens. Bo has 5 pens. How many pens do they have?",
            "Al has some pens. Bo has 5 pens. They have 9 pens. How many pens does Al have?",
        ),
        (
            "Al bought 4 pens. He has 5. Now how many pens does he have in all?",
            "Al bought some pens. He has 5. Now he has 9 pens in all. How many pens did Al buy?",
        ),
        (
            "Al baked 4 pies, Bo 5. How many pies did they need to sell?",
            "Al baked some pies, Bo 5. They needed to sell 9 pies. How many pies did Al bake?",
        ),
        (
            "There are 4 pens here and 5 in a box. How many pens are there in all?",
            "There are some pens here and 5 in a box. There are 9 pens in all. How many pens here are there?",
        ),
        (
            "There were 4 pens. 5 came. How many pens will there be in all?",
            "There were some pens. 5 came. There will be 9 pens in all. How many pens were there?",
        ),
        (
            "She paid $4 for tea and $5 for milk. How much money did she spend?",
            "She paid some money for tea and $5 for milk. She spent $9. How much did she pay for tea?",
        ),
        (
            "She earns 4 dollars, he 5. How much do they earn?",
            "She earns some dollars, he 5. They earn 9 dollars. How many dollars does she earn?",
        ),
        # Conditions in a question are told.
        (
            "Al has 4 pens. If Bo has 5 pens, how many pens would they have?",
            "Al has some pens. Bo has 5 pens. They would have 9 pens. How many pens does Al have?",
        ),
        # Questions from statements.
        (
            "Last week, she read 4 books. He read 5. How many books did they read?",
            "Last week, she read some books. He read 5. They read 9 books. How many books did she read?",
        ),
        (
            "The next day he ate 4 figs. She ate 5. How many figs did they eat?",
            "The next day he ate some figs. She ate 5. They ate 9 figs. How many figs did he eat the next day?",
        ),
        (
            "Workers will plant 4 trees today. 5 are there. How many trees will the park have?",
            "Workers will plant some trees today. 5 are there. The park will have 9 trees. "
            "How many trees will Workers plant today?",
        ),
        (
            "Al gets another 4 pens. He had 5. How many pens does he have?",
            "Al gets some more pens. He had 5. He has 9 pens. How many pens does Al get?",
        ),
        (
            "He got 4 pounds of rice. She got 5. How many pounds did they get?",
            "He got some pounds of rice. She got 5. They got 9 pounds. How many pounds of rice did he get?",
        ),
    ],
)
def test_text_of_the_first_number(text, expected):
    rows = reversed_rows(text, "4+5", "9")
    assert [new_text for new_text, _, answer in rows if answer == "4"] == [expected]


@pytest.mark.parametrize(
    ("text", "equation", "answer"),
    [
        ("Al has 4 pens and Bo has 5 pens. How many pens do they have?", "4+5", "8"),
        ("Al has 4 pens and Bo has 5 pens. How many pens do they have?", "4+5", None),
        ("How many pens do 4 boys and 5 girls have?", "4+5", "9"),  # numbers of the question alone
        ("How many have they? Al has 4 pens and Bo has 5 pens.", "4+5", "9"),  # not at the end
        ("Al has 4 pens. How many has Bo? How many pens do they have? 5 left.", "4+5", "9"),  # two questions
        ("Al has 4 pens and Bo has 5 pens. Find the sum.", "4+5", "9"),  # none
        ("Al weighs 4 kilos more than Bo, who weighs 5 kilos. How much is that?", "4+5", "9"),  # an amount of what
        ("Al read 4 times and Bo read 50%. How many books did they read?", "4+50%", "4.5"),
        ("He ate 40% of it and she ate 50%. How many percent did they eat?", "40%+50%", "90%"),
        ("The bus left at 4, and 5 cars waited. How many cars were there?", "4+5", "9"),
        ("Al, 4, met Bo, 5. How many years do they have?", "4+5", "9"),
    ],
)
def test_problem_that_cannot_be_reversed_gives_none(text, equation, answer):
    assert reversed_rows(text, equation, answer) == []


@pytest.mark.parametrize(
    ("auxiliary", "base", "form"),
    [
        ("did", "buy", "bought"),
        ("did", "bake", "baked"),
        ("did", "carry", "carried"),
        ("did", "play", "played"),
        ("did", "plan", "planned"),
        ("does", "have", "has"),
        ("does", "carry", "carries"),
        ("does", "go", "goes"),
        ("does", "wash", "washes"),
        ("do", "walk", "walk"),
    ],
)
def test_forms_of_verbs(auxiliary, base, form):
    assert AUXILIARIES[form] == (auxiliary, base) and INFLECTED[auxiliary, base] == form
