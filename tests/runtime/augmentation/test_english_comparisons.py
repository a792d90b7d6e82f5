import re

from hf_mwp.runtime.problems import MathWordProblem, compare_counts
from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.data.sources import read_part


TEXTS = [
    "Tom has 5 apples. He eats 2.",
    "Ann bought 3 red pens.",
    "Sue saw 9 birds.",
    "It costs 4 dollars.",
    "小明有3个苹果。",
]


def problems_of(texts):
    return [
        MathWordProblem(text, id=str(n), language="en" if text.isascii() else "zh") for n, text in enumerate(texts)
    ]


TIME = r"in the \w+|on \w+|last week|this week|today"


def answer_of(problem):
    """Read a text sentence by sentence, and answer its question by who has how many of which things at what time."""
    *sentences, question = re.split(r"(?<=\.) ", problem.text)
    counts, relations = {}, []
    for sentence in sentences:
        if found := re.fullmatch(r"(\w+) \w+ (\d+) (more|fewer) (.*) than (\w+)\.", sentence):
            relations.append(found.groups())
            continue
        name, body = sentence[:-1].split(" ", 1)
        for words, time in re.findall(rf"(.+?) ({TIME})(?:, | and |$)", body) or [(body, "")]:
            for count, thing in re.findall(r"(\d+) ([a-z]+(?: [a-z]+)?)(?=,| and|$)", words):
                counts[name, thing, time] = int(count)
    for name, step, relation, thing, other in relations:
        counts[name, thing, ""] = counts[other, thing, ""] + int(step) * (1 if relation == "more" else -1)
    if question.endswith(" in all?"):
        return sum(value for key, value in counts.items() if key[1] in question or "How many things" in question)
    asked = [value for key, value in counts.items() if all(part in question for part in key)]
    return abs(asked[0] - asked[1]) if " more " in question else sum(asked)


def test_questions_need_some_of_the_counts():
    rows, _ = read_part("asdiv_a:all")
    made = [new for news in compare_counts([problem_from_row(row) for row in rows]) for new in news]
    assert len(made) > 400
    for new in made:
        assert new.agrees() and new.expression.num_operators in (1, 2) and 2 <= len(new.numbers) <= 6
        assert len({*new.values}) == len(new.values)
    assert {len(new.numbers) for new in made} == {2, 3, 4, 6}


def test_answers_follow_from_the_text():
    made = [new for seed in range(40) for news in compare_counts(problems_of(TEXTS), seed=seed) for new in news]
    assert len(made) == 40 * 3 * 3
    for new in made:
        assert answer_of(new) == int(new.answer), new.text


def test_problems_without_people_or_things_give_none():
    made = list(compare_counts(problems_of(TEXTS)))
    assert [len(news) for news in made] == [3, 3, 3, 0, 0]
    assert [new.id for new in made[0]] == ["0-C1", "0-C2", "0-C3"]
    assert all(new.text.count("Tom") for new in made[0])
    assert list(compare_counts(problems_of(TEXTS[:1]))) == [[]]


def test_the_seed_decides():
    first, second, third = (list(compare_counts(problems_of(TEXTS), seed=seed)) for seed in (0, 0, 1))
    assert first == second != third
