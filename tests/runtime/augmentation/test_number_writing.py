import pytest

from hf_mwp.runtime.numbers.number_words import MAX_NUMBER, in_chinese, in_english
from hf_mwp.runtime.problems import MathWordProblem, rewrite_numbers
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.sources import read_part


def variants(text, equation, answer, language="zh", seeds=300):
    """Return the texts that some seed makes."""
    problem = MathWordProblem(text, equation, answer, language=language)
    made = set()
    for seed in range(seeds):
        for new in rewrite_numbers([problem], seed):
            if new is not None:
                assert new.values == problem.values
                made.add(new.text)
    return made


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "零"), (10, "十"), (12, "十二"), (20, "二十"), (105, "一百零五"), (110, "一百一十"), (1005, "一千零五")]
    + [(1050, "一千零五十"), (1500, "一千五百"), (10005, "一万零五"), (20500, "二万零五百"), (35000, "三万五千")],
)
def test_chinese_numerals(number, words):
    assert in_chinese(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (12, "twelve"), (20, "twenty"), (25, "twenty-five"), (100, "one hundred")]
    + [(205, "two hundred and five"), (3000, "three thousand"), (3005, "three thousand and five")]
    + [(3500, "three thousand five hundred")],
)
def test_english_number_words(number, words):
    assert in_english(number) == words


@pytest.mark.parametrize("write", [in_chinese, in_english])
def test_numbers_out_of_range(write):
    for number in (-1, MAX_NUMBER + 1):
        with pytest.raises(ValueError, match="`number` must be from 0 to 99,999"):
            write(number)


def test_number_words_are_read_back():
    for number in [*range(2, 1200), *range(2000, MAX_NUMBER, 977)]:
        for words, language in ((f"{in_chinese(number)}个", "zh"), (f"{in_english(number)} apples", "en")):
            problem = MathWordProblem(words, language=language, number_reading="people")
            assert problem.values == (number,), words


def test_chinese_counts_fractions_and_percentages():
    text = "小明有2个苹果，吃了(1/2)，还剩25%"
    assert variants(text, "x=2*(1/2)+25%", "1.25") >= {
        "小明有两个苹果，吃了(1/2)，还剩25%",
        "小明有2个苹果，吃了二分之一，还剩25%",
        "小明有2个苹果，吃了2分之1，还剩25%",
        r"小明有2个苹果，吃了\frac{1}{2}，还剩25%",
        "小明有2个苹果，吃了(1/2)，还剩百分之二十五",
        "小明有2个苹果，吃了(1/2)，还剩百分之25",
    }


def test_english_words_are_not_written_behind_a_currency():
    made = variants("Ann has 12 pens and $1500.", "x=12+1500", "1512", "en")
    assert made == {
        "Ann has twelve pens and $1500.",
        "Ann has 12 pens and $1,500.",
        "Ann has twelve pens and $1,500.",
    }


@pytest.mark.parametrize("name", ["math23k:validation", "gsm8k:test"])
def test_labels_are_exact(name):
    rows, _ = read_part(name)
    problems = [problem_from_row(row) for row in rows[:300]]
    count = 0
    for problem, new in zip(problems, rewrite_numbers(problems), strict=True):
        if new is None:
            continue
        count += 1
        assert new.text != problem.text
        assert new.id == f"{problem.id}-W"
        assert new.answer == problem.answer
        assert new.agrees()
    assert count > 150


def test_a_problem_with_a_wrong_equation_is_left_out():
    assert not variants("小明有2个苹果，又买3个，共几个？", "x=2+3", "6")


def test_option_of_the_loader(tmp_path):
    row = '{"text": "小明有2个苹果，又买3个，共几个？", "equation": "x=2+3", "answer": "5"}'
    (tmp_path / "train.jsonl").write_text(row, encoding="utf-8")
    (problem,) = load_mwp_dataset(tmp_path, augment_writing=1.0)["train"]
    assert problem["text"] in variants("小明有2个苹果，又买3个，共几个？", "x=2+3", "5")
    with pytest.raises(ValueError, match="`augment_writing` must be from 0 to 1, not 1.5"):
        load_mwp_dataset(tmp_path, augment_writing=1.5)
