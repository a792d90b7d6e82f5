from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import parse_number
from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.numbers.masked_text import mask_numbers
from hf_mwp.runtime.problems import find_numbers


def texts(text, language="zh", parse_number_words=False):
    return [mention.text for mention in find_numbers(text, language, parse_number_words)]


def values(text, language="zh", parse_number_words=None):
    return [mention.value for mention in find_numbers(text, language, parse_number_words)]


def fractions(numbers):
    return [Fraction(number) for number in numbers.split()]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("小明有4个苹果和2个梨", "4|2"),
        ("修了全长的(3/8)，还剩1(3/4)千米", "(3/8)|1(3/4)"),
        ("便宜20%，再便宜２５％", "20%|２５％"),
        ("共有49．每人6.1，7.2，9.5", "49|6.1|7.2|9.5"),
        ("长9．5千米", "9．5"),
        ("He has 49. She has $3.00.", "49|3.00"),
        ("比是6：5：4，时间是8：50", "6|5|4|8|50"),
        ("一个数的(1/5)5比它的15%多50", "(1/5)|5|15%|50"),
        ("3/8米和(3/0)", "3/8|3|0"),
        ("共行驶l4小时，0．O1", "l4|0|1"),
        ("找规律：2,5,11,23，1，234", "2|5|11|23|1|234"),
        ("12345,678 and v.5", "12345|678|5"),
        ("5,256 grown-ups and 300,000 dollars", "5,256|300,000"),
        ("costs .5 or -11", ".5|-11"),
        ("2.3.4", "2.3|4"),
        ("（３／８）和３．５", "（３／８）|３．５"),
        ("面积是24cm2或24 cm^2，体积3 m3，多少dm^3", "24|24|3"),
        ("3 km 2 m，am2，2 m 3", "3|2|2|2|3"),
        ("5 1/2% a year, 33 1/3%, 1/2％", "5 1/2%|33 1/3%|1/2％"),
        ("", ""),
        ("😀3😀[NUM]4", "3|4"),
    ],
)
def test_numbers_in_digits(text, numbers):
    assert "|".join(texts(text)) == numbers


def test_values_and_percentages():
    mentions = find_numbers("20%，(3/8)，1(3/4)，3,409，３．５，.5", "zh")
    assert [mention.value for mention in mentions] == fractions("1/5 3/8 7/4 3409 7/2 1/2")
    assert [mention.is_percent for mention in mentions] == [True, False, False, False, False, False]
    assert [mention.literal for mention in mentions] == "20% (3/8) 1(3/4) 3,409 ３．５ .5".split()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Seven red apples", "7"),
        ("Twenty-two boys, forty six girls and ninety - one dogs", "22 46 91"),
        ("two hundred and five", "205"),
        ("five thousand two hundred and one, two million", "5201 2000000"),
        ("a hundred, one hundred and one, a thousand", "100 101 1000"),
        ("three million, two hundred thousand and six", "3200006"),
        ("8 dozen books, a dozen eggs, dozens of boxes, half a dozen, a half-dozen", "8 12 12 12 6 6"),
        ("each one, a red one, someone, anyone's, hundreds, half, twice, double, once, first", ""),
        ("seven, eight and nine", "7 8 9"),
        ("two and a half miles, One-and-one-half hours", "5/2 3/2"),
        ("two and a half dozen, two and a halfpenny, half", "30 2"),
        ("the twenty-first, fifty-fifth and sixty-seven", "67"),
        ("five thousand and five thousand; two hundred and two hundred", "5000 5000 200 200"),
        ("two billion three million four thousand and five", "2003004005"),
        ("a five-year-old, sixty-five-inch", "5 65"),
        ("weight, often, eighth, tenth, sevenths", ""),
        ("zero and 0", "0 0"),
        ("two-hundred, a two-hundred-and-five-mile road, one-thousand; twenty-two-thousand", "200 205 1000 22000"),
        ("a two-million-dollar house", "2000000"),
        ("two  hundred and\r\nfive, twenty  five,  three   million", "205 25 3000000"),
        ("one hundred-two hundred, one thousand-two thousand; ten thousand - five", "100 200 1000 2000 10000 5"),
        ("sıx, ſeven, FİVE, two hundred", "200"),
    ],
)
def test_english_number_words(text, numbers):
    assert values(text, "en") == fractions(numbers)


def test_english_number_words_are_written_in_digits_for_expressions():
    (mention,) = find_numbers("Two Hundred and Five eggs", "en")
    assert (mention.text, mention.literal, mention.start, mention.end) == ("Two Hundred and Five", "205", 0, 20)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("三个苹果和两个梨", "3 2"),
        ("十二，二十，一百二十，两千五百零三，三万五千，一亿", "12 20 120 2503 35000 100000000"),
        ("一亿三千万，三千亿五千万，三万五千亿，两亿", "130000000 300050000000 3500000000000 200000000"),
        ("吃了十分之七，十分钟，每千克一点五元，五元三角", "7/10 10 3/2 53/10"),
        ("一点也不，四边形，十分高兴，等腰三角形", ""),
        ("两点五千克，三点五千米，百分之二点五", "5/2 7/2 1/40"),
        ("一又二分之一，三又四分之三，又买了三个", "3/2 15/4 3"),
        ("半小时，一半", "1/2 1/2"),
        ("三分之二，百分之八十", "2/3 4/5"),
        ("一共，一起，一些，第三天，星期三，三角形，十分，统一", ""),
        ("3万元，5个", "3 5"),
        ("百分之20，百分之二十", "1/5 1/5"),
        ("一二三，一万一万", ""),
        ("二百五，一千二，三万五，一百零五，二十五，三万零五", "250 1200 35000 105 25 30005"),
        ("三点五，十二点零五，一百点二五米", "7/2 241/20 401/4"),
        ("三点五分米，三点五分钟，三点五分，三点五十", "7/2 7/2 3 5 3 50"),
        ("两千克，三百千米，多少千米，两千米，三千个", "2 300 2 3000"),
        ("零件，百货，零售", ""),
    ],
)
def test_chinese_numerals(text, numbers):
    assert values(text, parse_number_words=True) == fractions(numbers)


def test_numerals_are_on_in_english_and_in_chinese_texts_without_digits():
    assert values("三个苹果，又买了两个") == [3, 2]
    assert texts("三个苹果，又买了2个", parse_number_words=None) == ["2"]
    assert texts("三个苹果，又买了两个", parse_number_words=False) == []
    assert mask_numbers("三个苹果，又买了1e999个").mentions == ()
    assert find_numbers("three apples", "zh") == []
    assert len(find_numbers("three apples", "en")) == 1
    assert find_numbers("three apples", "en", parse_number_words=False) == []


def test_unknown_language():
    with pytest.raises(ValueError, match="zh, en"):
        find_numbers("3", "fr")


def test_long_texts():
    assert len(find_numbers("苹果3个，" * 2000)) == 2000
    assert values(" ".join(map(str, range(200)))) == list(range(200))
    # More digits than exact arithmetic takes: left in the text.
    assert texts("9" * 10_000 + "，8") == ["8"]
    assert texts("(" * 5000 + "1" + ")" * 5000) == ["1"]
    assert texts("一万" * 3000 + "，三", parse_number_words=True) == ["三"]
    assert len(find_numbers("five thousand and " * 500, "en")) == 500


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (12, "12"),
        (0, "0"),
        ("3/4", "0.75"),
        ("1/3", "(1/3)"),
        ("157/50", "3.14"),
        ("1/1024", "0.0009765625"),
        ("1001/1000", "1.001"),
        ("-5/2", "-2.5"),
        ("-1/3", "-(1/3)"),
    ],
)
def test_literal_of_a_value(value, literal):
    assert literal_of(Fraction(value)) == literal
    assert parse_number(literal) == Fraction(value)
