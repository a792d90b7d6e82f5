import re
from dataclasses import replace

import pytest

from hf_mwp.runtime.augmentation import english_properties
from hf_mwp.runtime.problems import MathWordProblem, add_properties
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


TEXT = "Paul had 28 strawberries in his basket. He picked 35 more. How many strawberries did he have then?"
PROBLEM = MathWordProblem(TEXT, "x=28+35", "63", id="paul", language="en")


def versions(problem, count=200):
    """Return the different new problems of the first `count` seeds."""
    new = [next(add_properties([problem], seed)) for seed in range(count)]
    return {problem.text: problem for problem in new if problem is not None}


@pytest.fixture
def only(monkeypatch):
    """Return a function that leaves a single property with a single template."""

    def use(template, kind="sentences", stems=("zebra",), limits=(2, 90)):
        entry = {"stems": list(stems), "range": list(limits), "sentences": [], "phrases": [], "changes": []}
        entry[kind] = [template]
        if kind != "sentences":
            entry["sentences"] = ["It was {n}."]
        monkeypatch.setattr(english_properties, "_PROPERTIES", [entry])

    return use


def test_labels_do_not_change():
    found = versions(PROBLEM)
    assert len(found) > 100
    for text, new in found.items():
        assert new.agrees(1e-9)
        assert (new.equation, new.answer, new.language, new.context) == ("x=28+35", "63", "en", "")
        assert re.fullmatch(r"paul-P[1-4]", new.id)
        assert len(new.numbers) == len(PROBLEM.numbers) + int(new.id[-1])
        assert "Paul had 28 strawberries" in text
        assert text.endswith("How many strawberries did he have then?")
        assert "{" not in text


def test_sentence_is_about_the_person_or_the_things(only):
    only("{name} is {n} years old.")
    assert all(re.search(r" Paul is \d+ years old\.", text) for text in versions(PROBLEM, 20))
    only("Each of the {things} is {n} years old.")
    assert all(re.search(r" Each of the strawberries is \d+ years old\.", text) for text in versions(PROBLEM, 20))


def test_phrase_follows_the_count(only):
    only("weighing {n} grams", kind="phrases")
    texts = versions(PROBLEM, 40)
    phrases = [text for text in texts if "weighing" in text]
    assert phrases
    for text in phrases:
        assert re.match(r"Paul had 28 strawberries weighing \d+ grams in his basket\. ", text)


def test_change_is_a_sentence_and_a_later_sentence(only, monkeypatch):
    monkeypatch.setattr(english_properties, "SECOND_PROPERTY", 0)
    only("{name} weighed {n} kg. | Then {name} weighed {m} kg.", kind="changes")
    texts = [re.sub(r"\d+ kg", "N kg", text) for text in versions(PROBLEM, 100) if "kg" in text]
    before = "Paul weighed N kg."
    after = "Then Paul weighed N kg."
    facts = ["Paul had 28 strawberries in his basket.", "He picked 35 more."]
    expected = set()
    for first in range(3):
        for second in range(first, 3):
            sentences = [*facts[:first], before, *facts[first:second], after, *facts[second:]]
            expected.add(" ".join([*sentences, "How many strawberries did he have then?"]))
    assert set(texts) == expected


def test_change_is_a_sentence_and_a_clause_after_it(only, monkeypatch):
    monkeypatch.setattr(english_properties, "SECOND_PROPERTY", 0)
    only("{name} weighed {n} kg. | , so {name} then weighed {m} kg.", kind="changes")
    texts = {re.sub(r"\d+ kg", "N kg", text) for text in versions(PROBLEM, 100) if "kg" in text}
    first = "Paul had 28 strawberries in his basket"
    second = "He picked 35 more"
    before = "Paul weighed N kg."
    after = "so Paul then weighed N kg."
    question = "How many strawberries did he have then?"
    assert texts == {
        f"{before} {first}, {after} {second}. {question}",
        f"{before} {first}. {second}, {after} {question}",
        f"{first}. {before} {second}, {after} {question}",
    }


def test_nothing_changes_in_a_problem_with_two_questions(only):
    only("{name} weighed {n} kg. | , so {name} then weighed {m} kg.", kind="changes")
    problem = replace(PROBLEM, text=TEXT.replace("more.", "more?"))
    texts = versions(problem, 50)
    assert texts
    assert not any("kg" in text for text in texts)


def test_part_is_below_the_count(only):
    only("{part} of the {things} are red.")
    parts = {int(re.search(r"(\d+) of the", text)[1]) for text in versions(PROBLEM, 300)}
    assert parts == set(range(2, 28))


@pytest.mark.parametrize("word", ["pounds", "Weight", "weighs"])
def test_property_that_the_problem_mentions_is_not_added(only, word):
    only("Each of the {things} weighs {n} grams.", stems=("weigh", "pound"))
    assert versions(PROBLEM, 5)
    assert not versions(replace(PROBLEM, text=TEXT.replace("in his basket", f"({word})")), 5)


def test_numbers_of_the_problem_are_not_used(only):
    only("It was {n}.", limits=(28, 30))
    assert {re.search(r"It was (\d+)", text)[1] for text in versions(PROBLEM, 40)} == {"29", "30"}
    only("It was {n}.", limits=(28, 28))
    assert not versions(PROBLEM, 5)


@pytest.mark.parametrize(
    "problem",
    [
        MathWordProblem("小明有4个苹果。又买了3个。一共有多少个？", "x=4+3", "7"),
        MathWordProblem("How many are 28 berries and 35 berries?", "28+35", "63", language="en"),
        MathWordProblem("A number is 4 more than 3. What is the number?", "4+3", "7", language="en"),
        replace(PROBLEM, answer="64"),
        MathWordProblem("Paul has some. How many are some?", "1", "1", language="en"),
    ],
)
def test_problem_without_a_suitable_place(problem):
    assert not versions(problem, 5)


def test_units_are_not_things(only):
    only("Each of the {things} is {n} years old.")
    problem = MathWordProblem("Ann ran 5 miles and 30 minutes. Then 2 times 3 more. How far?", "5", "5", language="en")
    assert not versions(problem, 10)


def test_seed_decides():
    problems = [replace(PROBLEM, id=str(index)) for index in range(5)]
    assert list(add_properties(problems, 1)) == list(add_properties(problems, 1))
    assert list(add_properties(problems, 1)) != list(add_properties(problems, 2))


def test_loader_adds_them_on_request(tmp_path):
    row = f'{{"text": "{TEXT}", "equation": "{PROBLEM.equation}", "answer": "63"}}\n'
    (tmp_path / "train.jsonl").write_text(row, encoding="utf-8")
    assert len(load_mwp_dataset(tmp_path)["train"]) == 1
    original, new = load_mwp_dataset(tmp_path, augment_properties=True)["train"]
    assert original["text"] == TEXT
    assert len(new["text"]) > len(TEXT)
    assert problem_from_row(new).agrees()
