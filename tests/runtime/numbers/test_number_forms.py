"""The tables of the guide "Numbers in texts", and the time that the forms take."""

import html
import re
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

from hf_mwp.runtime.numbers.masked_text import _FORMS
from hf_mwp.runtime.problems import MathWordProblem, answer_value, find_numbers, mask_numbers
from hf_mwp.utils.language import language_of


GUIDE = Path(__file__).parents[3] / "docs/pages/guides/numbers.md"


def read_tables():
    """The texts and their readings in each table of the guide, by the heading before it."""
    tables = defaultdict(list)
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line
        elif line.startswith("|"):
            *_, text, reading = line.strip("| ").split("|")
            tables[heading].append((html.unescape(text.strip()), html.unescape(reading.strip())))
    # Without column names and the line below them.
    return {heading: rows[2:] for heading, rows in tables.items()}


TABLES = read_tables()


def written_plainly(text, language, reading="plain"):
    """The text with each number as its literal."""
    masked = mask_numbers(text, language, number_reading=reading)
    plain = masked.shown_segments[0]
    for mention, segment in zip(masked.mentions, masked.shown_segments[1:], strict=True):
        plain += mention.literal + segment
    return plain


def literals(text):
    return [mention.literal for mention in find_numbers(text, language_of(text))]


@pytest.mark.parametrize(
    "section",
    [
        "## All languages",
        "## Chinese",
        "## English",
        "### Chinese, with `people`",
        "### English, with `people`",
        "## Answers",
    ],
)
def test_guide_has_each_table(section):
    assert len(TABLES[section]) > 3


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("text", "plain"), TABLES["## All languages"])
def test_forms_of_all_languages(text, plain, language):
    if language == "zh" or "千米/秒" not in text:
        assert written_plainly(text, language) == plain


@pytest.mark.parametrize(("text", "plain"), TABLES["## Chinese"])
def test_chinese_forms(text, plain):
    assert written_plainly(text, "zh") == plain


@pytest.mark.parametrize(("text", "plain"), TABLES["## English"])
def test_english_forms(text, plain):
    assert written_plainly(text, "en") == plain


@pytest.mark.parametrize("text", [text for text, _ in TABLES["## English"]])
def test_english_texts_in_capitals_have_the_same_numbers(text):
    if re.search(r"I-95|Baker Street|\$1O|July|May|Day 1|iPhone", text):
        pytest.skip("in capitals, this name cannot be told from other words")
    masked = mask_numbers(text.upper(), "en")
    assert [mention.value for mention in masked.mentions] == [mention.value for mention in find_numbers(text, "en")]
    assert [mention.text for mention in masked.mentions] == [
        text.upper()[mention.start : mention.end] for mention in masked.mentions
    ]


def test_scale_words_may_begin_with_a_capital():
    assert [mention.value for mention in find_numbers("$3 Million and $500,000", "en")] == [3_000_000, 500_000]


def test_signs_of_forms_are_in_lower_case():
    for forms in _FORMS.values():
        for form in forms:
            assert form.signs == form.signs.lower()


@pytest.mark.parametrize(("text", "plain"), TABLES["### Chinese, with `people`"])
def test_numerals_before_units(text, plain):
    assert written_plainly(text, "zh", "people") == plain


@pytest.mark.parametrize(("text", "plain"), TABLES["### English, with `people`"])
def test_english_quantities_in_the_unit_asked_for(text, plain):
    assert written_plainly(text, "en", "people") == plain


@pytest.mark.parametrize(("answer", "value"), TABLES["## Answers"])
def test_answers(answer, value):
    assert answer_value(answer) == (None if value == "none" else Fraction(value))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("打八折，用去一半，长3千克半，\\frac12", "3 12"),
        ("3万元和5000元，上午8:30", "3 5000 8 30"),
        ("two thirds of 30, $3 million and $500", "two 30 3 500"),
    ],
)
def test_original_reading_has_no_forms_and_no_notes(text, numbers):
    masked = mask_numbers(text, language_of(text), number_reading="original")
    assert [mention.text for mention in masked.mentions] == numbers.split()
    assert masked.notes == ()


def test_number_words_that_are_switched_off_are_no_forms():
    (mention,) = find_numbers("打八折，买3千克半", "zh", parse_number_words=False)
    assert mention.text == "3千克半"
    assert find_numbers("two thirds of them", "en", parse_number_words=False) == []


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValueError, match="original, plain, people"):
        find_numbers("3", number_reading="newest")


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("小明有3支笔，又买两支，", "两支 was not read as a number"),
        ("小明有l2个苹果，吃了3个", "l2 was read as 12"),
        ("售价1，200元", "1，200 was read as 1200"),
        ("有3个。每人吃2个.5个人", ".5 was not read as a number"),
        ("There are fourty chairs", "fourty was read as 40"),
        ("a pair of shoes for 5 dollars", "a pair of was not read as a number"),
        (
            "$3 million and $500",
            "3 million was read as 3000000, because the text has or asks for numbers without million",
        ),
        ("A nail weighs point five ounces", "point five was read as 0.5"),
        ("The car was $4.5k", "4.5k was read as 4500"),
        ("A hot dog costs two fifty", "two fifty was read as 2.50"),
        ("He left at two fifty", "two fifty was not read as a number"),
        ("We counted 3, 500 ants", "3, 500 was read as 3500"),
        ("On that day 3, 500 ants came", "3, 500 was not read as a number"),
        ("The scores 89, 71, 92, 100 were good", ""),
        ("A pen is $1,25", "1,25 was read as 1.25"),
        ("half a can of food", "half a can was not read as a number"),
        ("half an hour", ""),
        ("每小时行6 0千米", "6 0 was read as 60"),
        ("西瓜2。5元一斤", "2。5 was read as 2.5"),
        ("西瓜2，5元一斤", "2，5 was not read as a number"),
        ("每件3 5元", "3 5 was not read as a number"),
        ("花1.5w买了5台", "1.5w was read as 15000"),
        ("月薪八千五，每月存2000元", "八千五 was not read as a number"),
        ("有二0本，给5个人", "二0 was read as 20"),
        ("小明有3支笔，又买2支", ""),
        ("Tom has 3 pens.", ""),
    ],
)
def test_uncertain_numbers_have_notes(text, notes):
    assert "; ".join(mask_numbers(text, language_of(text)).notes) == notes


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("花2w元，设速度是2w-4", "20000 2 4"),
        ("跑10k，奖金50元", "10 50"),
        ("胜5场，负12场，记作负3分", "5 12 -3"),
        ("五角星有5个，八角茴香3元", "5 3"),
        ("一九八〇年有3人，八〇年代有2人", "3 2"),
        ("三年一共有3人", "3 3"),
        ("五比三多几，有2个", "2"),
        ("5、8、9的平均数", "5 8 9"),
        ("一共5人。A、B两地相距30千米，几小时", "5 30"),
        ("长2米，每隔2米1棵", "2 2 1"),
        ("2小时30分80千米", "2.5 80"),
    ],
)
def test_words_like_forms(text, numbers):
    assert [mention.literal for mention in find_numbers(text, "zh", number_reading="people")] == numbers.split()


def test_a_form_never_cuts_a_number():
    assert written_plainly("有31/2米", "zh") == "有(31/2)米"
    assert written_plainly("比是2:30，打1.85折", "zh").startswith("比是2:30")


@pytest.mark.parametrize(
    ("text", "equation"),
    [
        ("原价300元，打八折", "300*80%"),
        ("原价300元，打八折", "300*0.8"),
        ("每千克32元，买3千克半", "32*3.5"),
        ("长18米，剪去四分之1", "18*1/4"),
    ],
)
def test_equations_use_the_numbers_of_forms(text, equation):
    assert MathWordProblem(text, equation).expression.to_infix() == "N0*N1"


# Pieces that are repeated up to 48,000 characters, separated by `|`.
REPEATED = (
    r"1|12 |1,|1{,}|一|两个|3千克|3元5|8:30|百分之|分之1|一半|半|3万元 5元|\frac1|\frac{1}{|**|**1**|'123| 123"
    r"|又|1又|打八折|二成|零下|1/|1/2 |.5元|l1|小红有两个苹果3个苹果|two |a |two and |a third of |twenty-"
    r"""|one point two |2 hours 3 |$3 million $5 |6'2" |3:45 starts |Room 12 |1.200 euros |1  1/2 a|答：|\boxed{"""
    "|####|1-1/2 a |1\u200b|half an |an hour and a |a couple |a dollar fifty |two fifty |5 hundred and "
    "|3, 500 ants |0,5 "
    r"|point five |is point |$4.5k |1h30 |half past |quarter to |from 10 pm to 6 am |5 ft 6 in |5ft.|July 4th "
    "|on 3/14 |5-year-old "
    "|ages 5-10 |1 foot is 12 inches how many inches |3 fifths of |one and a half dozen |How much 5 in "
    "|3元5角2分|5毛|6 0千米|三3. 5元|三2。5元|二0本|1米4，|3千个|¥1,000|价1.5w，|价8k，|三比二|前三天每|晚上三点半"
    "|1\u20e3|比多一半|5角8分|上午8点下午2时|一百分|（5分）|？A.1|5、|【例3】|八千五，|2 5元|12秒5，|8折，价|1∕4"
    "|气温负3|三成五"
).split("|")


@pytest.mark.slow
@pytest.mark.parametrize("piece", REPEATED)
def test_long_texts_take_linear_time(piece):
    # Quadratic time would take minutes.
    text = (piece * 48_000)[:48_000]
    for language in ("zh", "en"):
        mask_numbers(text, language, number_reading="people")
    answer_value(text)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("On the 1st day he sold 12 cups", "12"),
        ("On his 15th birthday he got 2 more", "15 2"),
        ("第2天和第15天", "15"),
        ("In 2001 it cost $9, $3 less each year", "2001 9 3"),
        ("In 2019, 2020 and 2021 he sold 12 cups", "12"),
        ("In 2019 Tom was 12 years old. How old was he in 2021?", "2019 12 2021"),
        ("A 5-year-old boy has 12 toys", "12"),
        ("A 5-year-old boy is 12 years younger than Tom. How old is Tom?", "5 12"),
        ("A 7-year-old girl has 18 dolls and her 9-year-old cousin has 11.", "18 11"),
        ("each teacher has one group, Kim had one cat", ""),
        ("Each teacher has one group. Kim had one cat.", "1"),
        ("Room 12 has 30 students", "30"),
        ("1.5千克苹果8元", "1.5 8"),
        ("面积是24平方米，高3ft2", "24 3"),
    ],
)
def test_digits_that_are_no_numbers(text, numbers):
    assert literals(text) == numbers.split()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("A cooler cools a room 2 degrees an hour.", "2"),
        ("Blake can clean his room 4 minutes more quickly.", "4"),
        ("They walk this route 6 days a week.", "6"),
        ("She went to room 12 and took 3 books.", "3"),
        ("She uses gas every 4th time she cuts her lawn.", "4"),
        ("He walks 2 miles more each week. How far does he walk by the 8th week?", "2 8"),
        ("How far will he ride on the 13th day?", "13"),
        ("How many apples did he eat by Day 5?", "5"),
        ("He works from May 3rd to May 9th. How many days is that?", "3 9"),
        ("She gave half to 5 friends and a quarter to 3 kids.", "5 3"),
        ("He had 2 cups and a half of the milk.", "2"),
        ("He leaves at 5 pm and comes back at 10 am.", "5 10"),
        ("A child of 3 has 2 5k runs.", "3 2 5"),
        ("The average grade 9 is better than grade 8.", "9 8"),
        ("Sort the digits 3,5 and 0,1.", "3 5 0 1"),
        ("The 4th grade class has 20 students. How many does the 5th grade have?", "20"),
        ("每天看148页，第6天应从第多少页看起．", "148 6"),
        ("跑道长400米，多少分钟后他们第3次相遇．", "400 3"),
        ("第3天看了25页，还剩多少页？", "25"),
    ],
)
def test_ordinals_and_places_are_numbers_where_they_may_be_needed(text, numbers):
    assert literals(text) == numbers.split()


def test_end_of_an_interval_of_dates_in_a_long_text():
    text = "这是一段与题目无关的话。" * 40 + "奶奶从3月25日开始吃药，每天吃3片，吃到4月3日，一共吃了多少片？"
    assert written_plainly(text, "zh", "people").endswith("奶奶从3月25日开始吃药，每天吃3片，吃10天，一共吃了多少片？")


@pytest.mark.parametrize("text", ["It ends at a\nquarter to 5.", "It ends at A Quarter\tto 5."])
def test_clock_times_in_words_have_any_white_space(text):
    assert literals(text) == ["4.75"]
