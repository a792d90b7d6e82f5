"""Periods of rates in Chinese texts are counted in the unit of the rate."""

from fractions import Fraction

import pytest

from hf_mwp.runtime.problems import find_numbers, mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "values"),
    [
        ("每天看5页，一个星期看多少页？", "每天看[NUM]页，[NUM]天看多少页？", [5, 7]),
        ("每天吃3片药，3周吃多少片？", "每天吃[NUM]片药，[NUM]天吃多少片？", [3, 21]),
        ("每日用水2吨，一年用水多少吨？", "每日用水[NUM]吨，[NUM]天用水多少吨？", [2, 365]),
        ("每月存200元，一年存多少元？", "每月存[NUM]元，[NUM]个月存多少元？", [200, 12]),
        ("每月用电60度，上半年用电多少度？", "每月用电[NUM]度，[NUM]个月用电多少度？", [60, 6]),
        ("每个月做9件，一个季度做多少件？", "每个月做[NUM]件，[NUM]个月做多少件？", [9, 3]),
        ("每小时漏水3升，一昼夜漏水多少升？", "每小时漏水[NUM]升，[NUM]小时漏水多少升？", [3, 24]),
        ("每分钟跳120下，半小时跳多少下？", "每分钟跳[NUM]下，[NUM]分钟跳多少下？", [120, 30]),
        ("每秒行5米，一分钟行多少米？", "每秒行[NUM]米，[NUM]秒行多少米？", [5, 60]),
        ("每周做700个，平均每天做多少个？", "每[NUM]天做[NUM]个，平均每天做多少个？", [7, 700]),
        ("每分钟走60米，每小时走多少米？", "每分钟走[NUM]米，每[NUM]分钟走多少米？", [60, 60]),
        ("每小时行90千米，行了40分钟。", "每小时行[NUM]千米，行了[NUM]小时。", [90, Fraction(2, 3)]),
    ],
)
def test_period_in_the_unit_of_the_rate(text, masked, values):
    result = mask_numbers(text, "zh", number_reading="people")
    assert result.text() == masked
    assert [mention.value for mention in result.mentions] == values


def test_note_tells_what_was_read():
    result = mask_numbers("每天看5页，一周看多少页？", "zh", number_reading="people")
    assert result.notes == ("一周 was read as 7天, because the text has a rate for this unit",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # The text counts days itself.
        ("每天做5个，前3天和一周一共做多少个？", [5, 3]),
        ("每天做5个，一周工作5天，一周做多少个？", [5, 5]),
        # A rate for each week.
        ("每周跑3次，每天做5题，两周跑几次？", [3, 5]),
        # Dates, full circles, interest, a rate for each minute.
        ("2008年每月用水5吨，一共用水多少吨？", [5]),
        ("每天绕操场跑3圈，跑一周是400米。", [3, 400]),
        ("每月存200元，一年的年利率是2%", [200, Fraction(1, 50)]),
        ("上午8时30分出发，每小时行60千米。", [8, 30, 60]),
        ("每分钟走60米，每小时休息10分钟。", [60, 10]),
        # No rate.
        ("小明一周看了35页，还剩20页。", [35, 20]),
    ],
)
def test_other_periods_stay(text, values):
    assert [mention.value for mention in find_numbers(text, "zh", number_reading="people")] == values


@pytest.mark.parametrize("reading", ["original", "plain"])
def test_other_readings_leave_periods(reading):
    mentions = find_numbers("每天看5页，一周看多少页？", "zh", number_reading=reading)
    assert [mention.value for mention in mentions] == [5]
