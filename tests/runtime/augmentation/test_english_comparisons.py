import re

import pytest

from hf_mwp.runtime.problems import MathWordProblem, compare_counts


TEXTS = [
    "Tom has 5 apples. He eats 2.",
    "Ann bought 3 red pens.",
    "Sue saw 9 birds.",
    "It costs 4 dollars.",
    "小明有3个苹果。",
]


@pytest.fixture
def problems():
    problems = []
    for index, text in enumerate(TEXTS):
        language = "en" if text.isascii() else "zh"
        problems.append(MathWordProblem(text, id=str(index), language=language))
    return problems


TIME = r"in the \w+|on \w+|last week|this week|today"


def read_counts(sentences):
    """The count of each thing that a person has at a time, by name, thing and time."""
    counts = {}
    relations = []
    for sentence in sentences:
        relation = re.fullmatch(r"(\w+) \w+ (\d+) (more|fewer) (.*) than (\w+)\.", sentence)
        if relation:
            relations.append(relation.groups())
            continue
        name, body = sentence[:-1].split(" ", 1)
        for words, time in re.findall(rf"(.+?) ({TIME})(?:, | and |$)", body) or [(body, "")]:
            for number, thing in re.findall(r"(\d+) ([a-z]+(?: [a-z]+)?)(?=,| and|$)", words):
                counts[name, thing, time] = int(number)
    for name, step, relation, thing, other_name in relations:
        sign = 1 if relation == "more" else -1
        counts[name, thing, ""] = counts[other_name, thing, ""] + sign * int(step)
    return counts


def answer_of(text):
    """Answer the question of a text by its counts."""
    *sentences, question = re.split(r"(?<=\.) ", text)
    counts = read_counts(sentences)
    if question.endswith(" in all?"):
        if "How many things" in question:
            return sum(counts.values())
        return sum(number for (_, thing, _), number in counts.items() if thing in question)
    numbers = []
    for (name, thing, time), number in counts.items():
        if name in question and thing in question and time in question:
            numbers.append(number)
    if " more " in question:
        return abs(numbers[0] - numbers[1])
    return sum(numbers)


def test_questions_need_some_of_the_counts(english_problems):
    new_problems = sum(compare_counts(english_problems[:600]), [])
    assert len(new_problems) > 200
    for problem in new_problems:
        assert problem.agrees()
        assert problem.expression.num_operators in (1, 2)
        assert len(set(problem.values)) == len(problem.values)
    assert {len(problem.numbers) for problem in new_problems} == {2, 3, 4, 6}


def test_answers_follow_from_the_text(problems):
    for seed in range(40):
        new_problems = sum(compare_counts(problems, seed=seed), [])
        assert len(new_problems) == 3 * 3
        for problem in new_problems:
            assert answer_of(problem.text) == int(problem.answer), problem.text


def test_problems_without_people_or_things_give_none(problems):
    first, *_, without_name, chinese = compare_counts(problems)
    assert [problem.id for problem in first] == ["0-C1", "0-C2", "0-C3"]
    assert all("Tom" in problem.text for problem in first)
    assert without_name == chinese == []
    assert list(compare_counts(problems[:1])) == [[]]


def test_seed_decides(problems):
    first = list(compare_counts(problems, seed=0))
    assert first == list(compare_counts(problems, seed=0))
    assert first != list(compare_counts(problems, seed=1))
