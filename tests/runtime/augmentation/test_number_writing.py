import pytest

from hf_mwp.runtime.numbers.number_words import MAX_NUMBER, in_chinese, in_english
from hf_mwp.runtime.problems import MathWordProblem, rewrite_numbers
from hf_mwp.solver.data import load_mwp_dataset


def variants(text, equation, answer, language="zh", seeds=100):
    """Return the texts that some seed makes."""
    problem = MathWordProblem(text, equation, answer, language=language)
    texts = set()
    for seed in range(seeds):
        (new,) = rewrite_numbers([problem], seed)
        if new is not None:
            assert new.values == problem.values
            texts.add(new.text)
    return texts


@pytest.mark.parametrize(
    ("number", "chinese", "english"),
    [
        (0, "零", "zero"),
        (10, "十", "ten"),
        (12, "十二", "twelve"),
        (25, "二十五", "twenty-five"),
        (100, "一百", "one hundred"),
        (110, "一百一十", "one hundred and ten"),
        (205, "二百零五", "two hundred and five"),
        (1005, "一千零五", "one thousand and five"),
        (1050, "一千零五十", "one thousand and fifty"),
        (3500, "三千五百", "three thousand five hundred"),
        (10005, "一万零五", "ten thousand and five"),
        (20500, "二万零五百", "twenty thousand five hundred"),
    ],
)
def test_numbers_in_words(number, chinese, english):
    assert in_chinese(number) == chinese
    assert in_english(number) == english


@pytest.mark.parametrize("write", [in_chinese, in_english])
def test_number_out_of_range_is_refused(write):
    for number in (-1, MAX_NUMBER + 1):
        with pytest.raises(ValueError, match="`number` must be from 0 to 99,999"):
            write(number)


def test_number_words_are_read_back():
    for number in [*range(2, 130), *range(200, 2000, 37), *range(2000, MAX_NUMBER, 977)]:
        chinese = MathWordProblem(f"{in_chinese(number)}个", number_reading="people")
        english = MathWordProblem(f"{in_english(number)} apples", language="en", number_reading="people")
        assert chinese.values == english.values == (number,)


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
    assert variants("Ann has 12 pens and $1500.", "x=12+1500", "1512", "en") == {
        "Ann has twelve pens and $1500.",
        "Ann has 12 pens and $1,500.",
        "Ann has twelve pens and $1,500.",
    }


def test_labels_are_exact(shipped_problems):
    rewritten = 0
    problems = shipped_problems[::6]
    for problem, new in zip(problems, rewrite_numbers(problems), strict=True):
        if new is not None:
            rewritten += 1
            assert new.text != problem.text
            assert new.id == f"{problem.id}-W"
            assert new.answer == problem.answer
            assert new.agrees()
    assert rewritten > len(problems) / 2


def test_a_share_of_the_problems_is_rewritten_as_all_would_be(shipped_problems):
    problems = shipped_problems[::6]
    rewritten = list(rewrite_numbers(problems))
    of_share = list(rewrite_numbers(problems, share=0.3))
    for new, chosen in zip(rewritten, of_share, strict=True):
        assert chosen is None or chosen == new
    num_rewritten = sum(new is not None for new in rewritten)
    assert 0.1 < sum(chosen is not None for chosen in of_share) / num_rewritten < 0.5


def test_a_problem_with_a_wrong_equation_is_left_out():
    assert not variants("小明有2个苹果，又买3个，共几个？", "x=2+3", "6")


def test_loader_rewrites_numbers_on_request(tmp_path):
    row = '{"text": "小明有2个苹果，又买3个，共几个？", "equation": "x=2+3", "answer": "5"}'
    (tmp_path / "train.jsonl").write_text(row, encoding="utf-8")
    (problem,) = load_mwp_dataset(tmp_path, augment_writing=1.0)["train"]
    assert problem["text"] in variants("小明有2个苹果，又买3个，共几个？", "x=2+3", "5")
    with pytest.raises(ValueError, match="`augment_writing` must be from 0 to 1, not 1.5"):
        load_mwp_dataset(tmp_path, augment_writing=1.5)
