"""Quantities in different units are converted to the unit that the question asks for."""

from fractions import Fraction

import pytest

from hf_mwp.runtime.numbers.units import UNITS
from hf_mwp.runtime.problems import find_numbers, mask_numbers


def test_sizes_of_units():
    english = UNITS["en"]
    assert english["yards"].size / english["inch"].size == 36
    assert english["weeks"].size / english["days"].size == 7
    chinese = UNITS["zh"]
    assert chinese["千米"].size / chinese["毫米"].size == 10**6
    assert chinese["公斤"] == chinese["千克"]
    measures = {chinese[name].measure for name in ("米", "千克", "升", "小时", "元", "平方米", "立方米")}
    assert len(measures) == 7


@pytest.mark.parametrize(
    ("text", "masked", "numbers"),
    [
        ("绳子长2米，剪去45厘米，还剩多少厘米？", "绳子长[NUM]厘米，剪去[NUM]厘米，还剩多少厘米？", ["200", "45"]),
        ("5角和8角共多少元，如果有2元？", "[NUM]元和[NUM]元共多少元，如果有[NUM]元？", ["0.5", "0.8", "2"]),
        ("卡车重4吨，货重5000千克，共重几吨？", "卡车重[NUM]吨，货重[NUM]吨，共重几吨？", ["4", "5"]),
        ("绳子长2米，剪去1米，还剩多少厘米？", "绳子长[NUM]厘米，剪去[NUM]厘米，还剩多少厘米？", ["200", "100"]),
        ("绳子长2米，重45克，多少厘米？", "绳子长[NUM]厘米，重[NUM]克，多少厘米？", ["200", "45"]),
        (
            "小明高1米4，小红比他矮5厘米，小红高多少厘米？",
            "小明高[NUM]厘米，小红比他矮[NUM]厘米，小红高多少厘米？",
            ["140", "5"],
        ),
        ("每个75角，买4个多少元？", "每个[NUM]元，买[NUM]个多少元？", ["7.5", "4"]),
        ("每秒行5米，走了2千米，还有多少米？", "每秒行[NUM]米，走了[NUM]米，还有多少米？", ["5", "2000"]),
        ("面积4平方分米，底20厘米，高多少分米？", "面积[NUM]平方分米，底[NUM]分米，高多少分米？", ["4", "2"]),
        # To the unit of an area, and to the smallest unit if the question asks for another measure.
        ("长2米，宽50厘米，面积多少平方米？", "长[NUM]米，宽[NUM]米，面积多少平方米？", ["2", "0.5"]),
        ("有3千克糖，每袋500克，装几袋？", "有[NUM]克糖，每袋[NUM]克，装几袋？", ["3000", "500"]),
        (
            "有2米布，每件用1米，又有3千克棉花，做几件？",
            "有[NUM]米布，每件用[NUM]米，又有[NUM]千克棉花，做几件？",
            ["2", "1", "3"],
        ),
        ("买6斤苹果和2千克梨，一共多少千克？", "买[NUM]千克苹果和[NUM]千克梨，一共多少千克？", ["3", "2"]),
        ("长2米，宽50厘米，面积1平方米，对吗？", "长[NUM]米，宽[NUM]厘米，面积[NUM]平方米，对吗？", ["2", "50", "1"]),
        (
            "长1.5米，截面积8平方分米，体积多少立方米？",
            "长[NUM]米，截面积[NUM]平方分米，体积多少立方米？",
            ["1.5", "8"],
        ),
        # To the unit of length of the volume that is asked for: a liter is a cubic decimeter.
        (
            "长50厘米，宽30厘米，高4分米，装水多少升？",
            "长[NUM]分米，宽[NUM]分米，高[NUM]分米，装水多少升？",
            ["5", "3", "4"],
        ),
        (
            "长2分米，宽8cm，水深5cm，有水多少毫升？",
            "长[NUM]厘米，宽[NUM]cm，水深[NUM]cm，有水多少毫升？",
            ["20", "8", "5"],
        ),
        ("底面积20平方厘米，高8厘米，能装多少升？", "底面积[NUM]平方厘米，高[NUM]厘米，能装多少升？", ["20", "8"]),
        (
            "每行1千米用油0.036升，行100千米要多少升？",
            "每行[NUM]千米用油[NUM]升，行[NUM]千米要多少升？",
            ["1", "0.036", "100"],
        ),
        # A hectare is the square of 100 meters.
        ("地长200米，宽150米，是多少公顷？", "地长[NUM]百米，宽[NUM]百米，是多少公顷？", ["2", "1.5"]),
        # To the unit of a rate for an area.
        (
            "地有3公顷，每平方米收0.8千克，共收多少千克？",
            "地有[NUM]平方米，每平方米收[NUM]千克，共收多少千克？",
            ["30000", "0.8"],
        ),
        # Lengths on a map to the unit that is asked for, and actual lengths likewise.
        (
            "比例尺是1:500000，图上3厘米，实际多少千米？",
            "比例尺是[NUM]:[NUM]，图上[NUM]千米，实际多少千米？",
            ["1", "500000", "0.00003"],
        ),
        (
            "比例尺1：4000，实际80米，图上多少厘米？",
            "比例尺[NUM]：[NUM]，实际[NUM]厘米，图上多少厘米？",
            ["1", "4000", "8000"],
        ),
        (
            "比例尺1:6000000，图上5厘米，每小时行60千米，要几小时？",
            "比例尺[NUM]:[NUM]，图上[NUM]厘米，每小时行[NUM]千米，要几小时？",
            ["1", "6000000", "5", "60"],
        ),
        # A conversion of one number, times in rates, scales, lengths beside other areas, and other measures stay.
        ("绳子长2米，合多少厘米？", "绳子长[NUM]米，合多少厘米？", ["2"]),
        ("每小时行60千米，走了2小时，走了多少分钟？", "每小时行[NUM]千米，走了[NUM]小时，走了多少分钟？", ["60", "2"]),
        ("面积45平方分米，高3分米，底多少米？", "面积[NUM]平方分米，高[NUM]分米，底多少米？", ["45", "3"]),
        ("图上2厘米是实际4米，多少厘米？", "图上[NUM]厘米是实际[NUM]米，多少厘米？", ["2", "4"]),
        ("绳子长2米，剪去45厘米，还剩多少？", "绳子长[NUM]厘米，剪去[NUM]厘米，还剩多少？", ["200", "45"]),
    ],
)
def test_chinese_quantities(text, masked, numbers):
    result = mask_numbers(text, "zh", number_reading="people")
    assert result.text() == masked
    assert [mention.literal for mention in result.mentions] == numbers


def test_english_quantities():
    text = "A rope is 3 feet long. 20 inches are cut off. How many inches are left?"
    result = mask_numbers(text, "en", number_reading="people")
    assert result.text() == "A rope is [NUM] inches long. [NUM] inches are cut off. How many inches are left?"
    assert [mention.value for mention in result.mentions] == [36, 20]
    assert result.notes == ("3 feet was read as 36 inches, the unit of the question or of another quantity",)
    rate = "He runs 3 feet per second for 20 inches. How many inches?"
    assert [mention.value for mention in find_numbers(rate, "en", number_reading="people")] == [3, 20]


def test_lengths_for_a_volume_in_liters():
    text = "A tank is 60 cm long, 30 cm wide and 5 decimeters high. How many liters does it hold?"
    result = mask_numbers(text, "en", number_reading="people")
    edges = "A tank is [NUM] decimeters long, [NUM] decimeters wide and [NUM] decimeters high."
    assert result.text() == f"{edges} How many liters does it hold?"
    assert [mention.literal for mention in result.mentions] == ["6", "3", "5"]


def test_cents_as_people_write_them():
    text = "Gum is 25c a pack. How many dollars do 8 packs cost?"
    result = mask_numbers(text, "en", number_reading="people")
    assert result.text() == "Gum is [NUM] dollars a pack. How many dollars do [NUM] packs cost?"
    assert [mention.literal for mention in result.mentions] == ["0.25", "8"]


def test_a_third_of_a_unit_is_exact():
    text = "1分钟和20秒共多少分钟？"
    values = [mention.value for mention in find_numbers(text, "zh", number_reading="people")]
    assert values == [1, Fraction(1, 3)]


@pytest.mark.parametrize("reading", ["original", "plain"])
def test_other_readings_keep_the_units(reading):
    mentions = find_numbers("绳子长2米，剪去45厘米，还剩多少厘米？", "zh", number_reading=reading)
    assert [mention.literal for mention in mentions] == ["2", "45"]
