import pytest

from hf_mwp.runtime.problems import MathWordProblem, reverse_operations


def reversed_rows(text, equation, answer, language="zh"):
    problem = MathWordProblem(text, equation, answer, language=language)
    return [(new.text, new.equation, new.answer) for new in reverse_operations(problem)]


def test_each_number_is_asked_for_in_a_clause_at_the_end():
    assert reversed_rows("食堂运来105千克萝卜，运来的青菜是萝卜的3倍，运来青菜多少千克？", "x=105*3", "315") == [
        ("运来的青菜是萝卜的3倍，运来青菜315千克，食堂运来多少千克萝卜？", "x=315/3", "105"),
        ("食堂运来105千克萝卜，运来青菜315千克，运来的青菜是萝卜的多少倍？", "x=315/105", "3"),
    ]


def test_a_number_in_words_is_an_answer_in_digits():
    text = "Tom has five apples. Tom buys 3 apples. How many apples does Tom have?"
    first, second = reversed_rows(text, "x=5+3", "8", "en")
    assert first[1:] == ("x=8-3", "5")
    assert second[1:] == ("x=8-5", "3")


@pytest.mark.parametrize(
    ("equation", "answer", "solved"),
    [
        ("x=30+6", "36", "x=36-30 x=36-6"),
        ("x=30-6", "24", "x=24+6 x=30-24"),
        ("x=30*6", "180", "x=180/30 x=180/6"),
        ("x=30/6", "5", "x=30/5 x=5*6"),
        ("x=6/30", "0.2", "x=0.2*30 x=6/0.2"),
        ("x=100-(30-6)*2", "52", "x=(100-52)/2+6 x=30-(100-52)/2"),
        # What stands under a power, twice or not at all in the equation cannot be solved for.
        ("x=30^2+6", "906", "x=906-30^2"),
        ("x=30*30+6", "906", "x=906-30*30"),
        ("x=6+1", "7", "x=7-1"),
    ],
)
def test_equation_is_solved_for_the_number(equation, answer, solved):
    rows = reversed_rows("甲有30个，乙有6个，丙有多少个？", equation, answer)
    assert sorted(row[1] for row in rows) == solved.split()


@pytest.mark.parametrize(
    ("text", "equation", "answer", "expected"),
    [
        # Shares and percentages are asked for as such, numbers with a unit as numbers.
        ("一共有60个，卖了(1/3)，求卖了几个．", "x=60*(1/3)", "20", "一共有60个，卖了20个，卖了几分之几？"),
        ("一共有60吨，卖了20%，卖了多少吨？", "x=60*20%", "12", "一共有60吨，卖了12吨，卖了百分之几？"),
        ("有2块地，每块收(1/3)吨，共收多少吨？", "x=2*(1/3)", "(2/3)", "有2块地，共收(2/3)吨，每块收多少吨？"),
        # So are answers told.
        ("男生20人，女生25人，男生是女生的百分之几？", "x=20/25", "80%", "男生20人，男生是女生的80%，女生多少人？"),
        ("男20人，女30人，男是女的几分之几？", "x=20/30", "(2/3)", "男20人，男是女的(2/3)，女多少人？"),
        ("每支笔3元，买5支要多少钱？", "x=3*5", "15", "每支笔3元，买多少支要15元？"),
        # A sign between digits ends no clause.
        ("共1,200人，分成4队，每队几人？", "x=1200/4", "300", "共1,200人，每队300人，分成多少队？"),
    ],
)
def test_text_of_the_last_number(text, equation, answer, expected):
    assert reversed_rows(text, equation, answer)[-1][0] == expected


@pytest.mark.parametrize(
    ("text", "equation", "answer"),
    [
        ("有4个苹果和2个梨，一共有水果几个？", "x=4+2", "7"),  # the equation does not give the answer
        ("有4个苹果和2个梨，一共有水果几个？", "x=4+2", None),
        ("有4个苹果和2个梨，一共有水果几个？", None, "6"),
        ("有4个苹果和2个梨，一共有水果几个？", "x=4", "4"),
        ("有4个苹果和2个梨，一共有几个？苹果比梨多几个？", "x=4-2", "2"),  # two questions
        ("有4个苹果和2个梨，求它们的差．", "x=4-2", "2"),  # none
        ("求多少个？有4个苹果和2个梨．", "x=4-2", "2"),  # not at the end
        ("有4个苹果和2个梨，苹果比梨多几个？", "x=4-2", "2"),  # 2 would be told twice
        ("有4个苹果和9个梨，苹果比梨多几个？", "x=4-9", "-5"),
        ("把1个苹果平均分给887个人，每人几个？", "x=1/887", "(1/887)"),
        ("第3天和第4天，一共第几天？", "x=3+4", "7"),
        ("2月3日和5日，共多少日？", "x=3+5", "8"),
        ("甲与乙的比是3：4，和是多少？", "x=3+4", "7"),
        ("2012年到2016年，过了多少年？", "x=2016-2012", "4"),
    ],
)
def test_problem_that_cannot_be_reversed_gives_none(text, equation, answer):
    assert reversed_rows(text, equation, answer) == []


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="`language`.* 'fr'"):
        reverse_operations(MathWordProblem("4 pommes, 2 poires, combien ?", "4+2", "6", id="7", language="fr"))


def test_reversed_problem_has_one_number_exchanged_for_the_answer(shipped_problems):
    num_reversed = 0
    for old in shipped_problems:
        for new in reverse_operations(old):
            num_reversed += 1
            new_answer = old.values[int(new.id.rpartition("-N")[2])]
            assert new.expression.evaluate(new.values) == new_answer == new.answer_value
            assert sorted([*new.values, new_answer]) == sorted([*old.values, old.answer_value])
            assert new.expression.num_operators == old.expression.num_operators
    assert num_reversed > 300
