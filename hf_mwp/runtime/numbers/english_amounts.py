"""Forms of amounts in English texts: feet and inches, quantities of two units, money, decimal commas."""

import re
from dataclasses import dataclass
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import literal_of

from .english_numbers import IGNORE_CASE, ONE_TO_NINE, number_of
from .english_numerals import BELOW_100, TENS
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, unit_names


@dataclass(frozen=True)
class _Unit:
    """A unit of a compound such as 2 hours 15 minutes."""

    plural: str  # for the masked text
    size: int  # in the smallest unit of its scale
    spellings: tuple[str, ...]  # without the s of the plural


_SCALES = (
    (
        _Unit("hours", 3600, ("hour", "hr", "h")),
        _Unit("minutes", 60, ("minute", "min", "m")),
        _Unit("seconds", 1, ("second", "sec", "s")),
    ),
    (
        _Unit("yards", 36, ("yard", "yd")),
        _Unit("feet", 12, ("feet", "foot", "ft")),
        _Unit("inches", 1, ("inch", "inche", "in")),
    ),
    (_Unit("pounds", 16, ("pound", "lb")), _Unit("ounces", 1, ("ounce", "oz"))),
    (
        _Unit("kilometers", 100_000, ("kilometer", "kilometre", "km")),
        _Unit("meters", 100, ("meter", "metre", "m")),
        _Unit("centimeters", 1, ("centimeter", "centimetre", "cm")),
    ),
    (_Unit("kilograms", 1000, ("kilogram", "kilo", "kg")), _Unit("grams", 1, ("gram", "g"))),
    (_Unit("gallons", 4, ("gallon", "gal")), _Unit("quarts", 1, ("quart", "qt"))),
    (_Unit("years", 12, ("year", "yr")), _Unit("months", 1, ("month",))),
    (_Unit("weeks", 7, ("week",)), _Unit("days", 1, ("day",))),
    (_Unit("dollars", 100, ("dollar", "buck")), _Unit("cents", 1, ("cent",))),
    (_Unit("pounds", 100, ("pound",)), _Unit("pence", 1, ("pence",))),
)


def _units_by_spelling() -> tuple[dict[str, _Unit], ...]:
    scales = []
    for units in _SCALES:
        spelled = {}
        for unit in units:
            for spelling in unit.spellings:
                spelled[spelling] = unit
        scales.append(spelled)
    return tuple(scales)


_QUOTED = re.compile(r"[\"“](?=[A-Za-z])")
_FEET_SIGN = re.compile(r"\d['’′](?!\w)")
_INCHES_SIGN = re.compile(r"\d(?:[\"”″]|''|’’)")
_SPELLED = _units_by_spelling()
_SPELLINGS = unit_names(_SPELLED)
_ABBREVIATION = re.compile(r"(?:hr|min|sec|yd|ft|in|lb|oz|yr|gal|qt|[kc]m|kg)s?\Z")
_COMPARED = re.compile(r"\s(?:more|less|fewer|longer|shorter|taller|higher|lower|cheaper|later|earlier|faster|off)\b")
_AFTER_INCHES = re.compile(r"\s(?:(?:the|an?|one|all|each|every|total|his|her|their|my|our|its|this|that)\b|\d|[A-Z])")


def _feet_and_inches(match: re.Match[str], text: str) -> FormMatch | None:
    """6'2\", 6 ft 2."""
    groups = match.groupdict()
    feet = int(number_of(groups["feet"] or groups["small_feet"]))
    inches = int(number_of(groups["inches"] or groups["small_inches"]))
    if inches > 11:
        return None
    if asks_for("how many (?:more )?inches", text):
        return number_match(match, 12 * feet + inches, unit=" inches")
    return number_match(match, feet + Fraction(inches, 12), unit=" feet")


def _feet_or_inches(match: re.Match[str], text: str) -> FormMatch | None:
    """8' and 18" beside each other, or one of them in a question for feet or inches."""
    is_measured = _FEET_SIGN.search(text) is not None and _INCHES_SIGN.search(text) is not None
    is_asked = asks_for(r"how many (?:more |total |square |cubic )?(?:feet|inches)\b|\bin (?:feet|inches)\b", text)
    if _QUOTED.search(text) or not (is_measured or is_asked):
        return None
    unit = " feet" if match["sign"] in "'’′" else " inches"
    return number_match(match, number_of(match["number"]), unit=unit)


def _find_units(large: str, small: str) -> tuple[_Unit, _Unit] | None:
    """Return two units of the same scale, the first of them larger than the second, or `None`."""
    for spelled in _SPELLED:
        if large in spelled and small in spelled and spelled[large].size > spelled[small].size:
            return spelled[large], spelled[small]
    return None


def _compound(match: re.Match[str], text: str) -> FormMatch | None:
    """2 hours 15 minutes, 5 ft 4 in: one number in the unit that is asked for, or in the larger unit."""
    units = _find_units(match["large"].lower(), match["small"].lower())
    if units is None:
        return None
    rest = text[match.end() : match.end() + 12]
    # "It costs 3 dollars, 20 cents more than a pen" has two numbers, "6 feet. 4 inches" two sentences.
    if "," in match["gap"] and _COMPARED.match(rest):
        return None
    if "." in match["gap"] and not _ABBREVIATION.search(match["large_unit"]):
        return None
    # "5 ft and 6 in the" has a preposition.
    if match["small"] == "in" and _AFTER_INCHES.match(rest):
        return None
    large, small = units
    smallest = number_of(match["first"]) * large.size + number_of(match["second"]) * small.size
    unit = large
    # "How many in each box" does not ask for inches.
    asked = f"(?:{'|'.join(spelling for spelling in small.spellings if spelling != 'in')})"
    # "1 inch is 2.5 cm" calculates with inches.
    if asks_for(
        rf"how (?:many|much)(?: \w+)? {asked}s?\b|\bin {small.plural}\s?\?|\b(?:1|one) {asked} (?:is|=)", text
    ):
        unit = small
    return number_match(match, smallest / unit.size, unit=f" {unit.plural}")


def _price(match: re.Match[str], text: str) -> FormMatch:
    """A dollar fifty, 5 bucks 20."""
    value = number_of(match["dollars"]) + number_of(match["cents"]) / 100
    return number_match(match, value, unit=" dollars")


def _dollars_and_cents(match: re.Match[str], text: str) -> FormMatch:
    """$3 and 25 cents."""
    return number_match(match, int(match["dollars"]) + Fraction(int(match["cents"]), 100))


_MONEY_WORDS = re.compile(r"\$|\b(?:dollar|cent|buck|cost|price|pay|paid|spen[dt]|rent|salary)", re.IGNORECASE)
_LARGE_PRICES = re.compile(
    r"\b(?:rent|salary|mortgage|laptop|car|holiday|vacation|a month|per month|a year)\b", re.IGNORECASE
)


def _price_in_words(match: re.Match[str], text: str) -> FormMatch | None:
    """Two fifty each."""
    if not _MONEY_WORDS.search(text_around(match, text)):
        return None
    value = number_of(match["dollars"]) + number_of(match["cents"]) / 100
    note = f"{match['price']} was read as {float(value):.2f}"
    return number_match(match, value, unit=" dollars", note=note, group="price")


def _teens_and_tens(match: re.Match[str], text: str) -> FormMatch | None:
    """Twelve fifty: a rent of 1250 dollars, or a price of 12.50."""
    if not _MONEY_WORDS.search(text_around(match, text)):
        return None
    value = 100 * number_of(match["hundreds"]) + number_of(match["rest"])
    if not _LARGE_PRICES.search(text_around(match, text)):
        value /= 100
    note = f"{match['price']} was read as {literal_of(value)}"
    return number_match(match, value, unit=" dollars", note=note, group="price")


def _spaced_price(match: re.Match[str], text: str) -> FormMatch:
    """$12. 50, $12 .50: a space inside of a decimal, as text recognition writes it."""
    literal = "".join(match[0].split())
    return number_match(match, Fraction(literal), literal, note=f"{match[0]} was read as {literal}")


def _decimal_comma(match: re.Match[str], text: str) -> FormMatch:
    """$1,25, 0,5 liters."""
    literal = match[0].replace(",", ".")
    return number_match(match, Fraction(literal), literal, note=f"{match[0]} was read as {literal}")


_DIGITS = r"\d{1,9}(?:\.\d{1,6})?"
_CENTS = rf"(?:\d\d|(?:{'|'.join(TENS)})(?:[\s-](?:{ONE_TO_NINE}))?)"
_AFTER_PRICE = r"(?=[.,;:?!](?!\d)|\s(?:for|each|apiece|an?|per|and|to|on|in|at|from|plus|left|back)\b|\s*\Z)"

ENGLISH_AMOUNTS = (
    NumberForm(
        "feet and inches",
        re.compile(
            r"(?<![\d'’])(?P<feet>\d{1,2})['’′]\s?(?P<inches>\d{1,2})"
            r"(?:[\"”″]|''|’’|(?=\s(?:tall|long|high|wide)\b))"
            # 5'10 without a sign of inches.
            r"|(?<![\d'’])(?P<small_feet>[3-7])['’′](?P<small_inches>\d|1[01])(?=[.,;?!]\s|[.,;?!]?\Z|\s(?:and|but|while|now)\b)"
        ),
        _feet_and_inches,
        "' ’ ′",
    ),
    NumberForm(
        "feet or inches",
        re.compile(
            r"(?<![\d.,'’\"])(?P<number>\d{1,3}(?:\.\d{1,2})?)(?P<sign>['’′](?!['’\w])|[\"”″]|''|’’)"
            r"(?=[.,;?!)]|\s(?:x|by|long|wide|tall|high|deep|thick|taller|shorter|longer|wider|and|each|of|off|from|piece|pieces|board|boards|pipe|rope|ribbon)\b|\s?×|\s*\Z)"
        ),
        _feet_or_inches,
        "' ’ ′ \" ” ″",
        at_digits=True,
    ),
    NumberForm(
        "feet and inches in words",
        re.compile(
            rf"\b(?P<feet>\d|{ONE_TO_NINE})(?:[\s-]|(?<=\d)(?=ft))(?:ft\.?|foot|feet)[\s-](?P<inches>\d{{1,2}}|{BELOW_100})"
            r"(?=\stall\b|[.;?!](?!\d)|,\show\b|,?\s(?:and|but|while)\s(?:my|his|her|our|the|i|he|she|[a-z]{1,12}\s(?:is|was))\b)",
            IGNORE_CASE,
        ),
        _feet_and_inches,
        "ft foot feet",
    ),
    NumberForm(
        "several units",
        re.compile(
            rf"\b(?P<first>{_DIGITS}|(?:an?|{BELOW_100})(?=[\s-]))[\s-]?(?P<large_unit>(?P<large>{_SPELLINGS})s?)"
            rf"(?P<gap>\.?,?\s(?:(?:and|&|n)\s)?|(?=\d))(?P<second>{_DIGITS}|{BELOW_100}(?=[\s-]))[\s-]?(?P<small>{_SPELLINGS})s?\b"
            r"(?:\.(?=\s(?:tall|long|wide|high|deep|of|and|per)\b))?",
            IGNORE_CASE,
        ),
        _compound,
    ),
    NumberForm(
        "dollars and cents",
        re.compile(r"(?<=\$)(?P<dollars>\d{1,6}) and (?P<cents>\d{1,2}) cents\b"),
        _dollars_and_cents,
        "$",
    ),
    NumberForm(
        "price after a unit",
        re.compile(
            rf"\b(?P<dollars>an?|\d{{1,4}}|{BELOW_100})\s(?:dollars?|bucks?)\s(?P<cents>{_CENTS}){_AFTER_PRICE}",
            IGNORE_CASE,
        ),
        _price,
        "dollar buck",
    ),
    NumberForm(
        "price in words",
        re.compile(
            r"(?:\A|(?<=[.?!]\s)|\b(?:costs?|is|are|was|were|for|pays?|paid|charges?)\s)"
            rf"(?P<price>(?P<dollars>{ONE_TO_NINE})\s(?P<cents>{_CENTS})){_AFTER_PRICE}",
            IGNORE_CASE,
        ),
        _price_in_words,
        ONE_TO_NINE.replace("|", " "),
    ),
    NumberForm(
        "price of teens and tens",
        re.compile(
            r"(?:\A|(?<=[.?!]\s)|\b(?:costs?|is|are|was|were|for|pays?|paid|charges?)\s)"
            rf"(?P<price>(?P<hundreds>ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen)\s"
            rf"(?P<rest>(?:{'|'.join(TENS)})(?:[\s-](?:{ONE_TO_NINE}))?)){_AFTER_PRICE}",
            IGNORE_CASE,
        ),
        _teens_and_tens,
        "ten eleven twelve teen",
    ),
    NumberForm(
        "price with a space",
        re.compile(
            r"(?<=[$€£])\d{1,4}(?: \.|\. )\d\d(?![\d%:])"
            r"(?=[.,;?!]?\s*\Z|[,;?!]\s|\.\s[A-Z]|\s(?:and|each|per|an?|for|on|in|at|plus|more|less|from|to|left)\b)"
        ),
        _spaced_price,
        "$ € £",
    ),
    NumberForm(
        "decimal comma",
        re.compile(
            r"(?<=[$€£])\d{1,4},\d\d(?![\d,])|(?<![\d.,$€£])(?:0,\d{1,3}|\d{1,3},\d{1,2})"
            r"(?=\s?(?:[kcm]?m|k?g|m?l|lit(?:er|re)s?|(?:kilo|centi|milli)?met(?:er|re)s?|(?:kilo)?grams?|kilos?"
            r"|euros?|dollars?|miles?|feet|inches|hours?|cups?|pounds?|[mb]illion)\b)|(?<![\d.,])\d{1,4},\d\d(?=\s?€)"
        ),
        _decimal_comma,
        ",",
        at_digits=True,
    ),
)
