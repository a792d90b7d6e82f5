"""Conversion of quantities to the unit that the question or a rate asks for."""

import re
from dataclasses import replace

from hf_mwp.runtime.expressions.numbers import literal_of

from .english_numbers import MAX_SHORT
from .english_units import asks_for_an_area, unit_of_a_price, unit_of_a_speed, unit_of_areas
from .number_mention import NumberMention
from .unit_tables import UNITS, WRITTEN_NAMES, Quantity, unit_names


_UNIT_BEHIND = {
    # 3元5角 and 2小时30分钟 are quantities of two units; 5元/千克 is a rate.
    "zh": re.compile(rf"\s?({unit_names('zh')})(?!\s?[\d半角分秒形/／每])(?![A-Za-z²³^*])"),
    "en": re.compile(
        rf"(?:[ -]|(?=[kcm]?[gmlL]|lbs?|oz|ft|¢|c\b))({unit_names('en')})(?<=[\w¢])(?![\w²³^])"
        # 5 kg/day and "60 meters a minute" are rates.
        r"(?! (?:and )?\d| ?/| (?:per|an?|each|every) (?:second|minute|hour|day|week|month|year)\b)"
    ),
}
_ASKED_UNIT = {
    "zh": re.compile(rf"(?:多少|几)(?:个)?({unit_names('zh')})(?![A-Za-z²³^*/／每])"),
    "en": re.compile(
        r"\b(?:how many(?: more| total)?"
        r"|(?:how (?:much|far|long|tall|high|wide|deep|heavy)|find|what(?:'s| is| was| will)|calculate|work out)"
        r" [^.?!]{1,80} in)"
        rf" ({unit_names('en')})\b(?! per\b)",
        re.IGNORECASE,
    ),
}
_ASKED_POWER = re.compile(r"(?:多少|几)个?(?:平方|立方)(千米|[分厘毫]?米)(?![/／每])")
# Edges of the cube or the square: a liter is a cubic decimeter.
_EDGES = {
    "en": {"liters": "decimeters", "milliliters": "centimeters"},
    "zh": {"升": "分米", "毫升": "厘米", "公顷": "百米"},
}
_MAX_EDGE = 100  # largest unit of a length, in edges
# 比例尺是1:500000, but not a proportion such as 1:3.
_MAP_SCALE = re.compile(r"比例尺.{0,10}?1\s?[:：∶]\s?\d{3}")
# Words of scales and proportions, and percentages, by which the quantities of a text keep their units. A percentage
# of a quantity may be asked for in another unit: 2千克盐水，含盐15%，有盐多少克.
_PROPORTIONS = re.compile(r"∶|[/／]|\d\s?[:：]\s?\d|比例|之比|的比|图上|地图")
_SCALES = {
    "zh": re.compile(r"∶|[%/／]|\d\s?[:：]\s?\d|比例|之比|的比|图上|地图|率"),
    "en": re.compile(
        r"\b(?:per ?cent|pct|rates?|ratio|(?:stands? for|represents?)(?= \d))\b"
        r"|[%/=]|\b(?:1|one) [a-z]+ (?:is|equals|has)\b"
    ),
}
_RATES = {
    "zh": re.compile(
        r"每(?![天日周月年人]|星期|个人)|[率占∶%/／]|\d\s?[:：]\s?\d|比例|之比|的比|平均|图上|地图|照这|照此|同样|速"
        r"|能造|生产"
    ),
    "en": re.compile(
        r"\b(?:per|each|every|an? (?:hour|minute|day|week|mile|pound)(?! and a)|rates?|average|speed|scale|map"
        r"|percent|ratio)\b"
        # "1 foot is 12 inches" is a definition.
        r"|[%/=]|\b(?:1|one) [a-z]+ (?:is|equals|has)\b"
    ),
}
_LENGTH = UNITS["zh"]["米"].measure
# Quantities of these measures keep their units only in scales and proportions, not next to rates: "Each pen costs 75
# cents. How many dollars are left?" Those of others do: 每小时行60千米，走了2小时，走了多少分钟.
_NEXT_TO_RATES = {
    "en": {UNITS["en"][name].measure for name in ("dollars", "meters", "kilograms", "liters", "ounces")},
    "zh": {UNITS["zh"][name].measure for name in ("元", "米", "克", "升", "平方米", "立方米")},
}
# English measures whose constants the solvers do not know. In short texts, they are unfamiliar with all measures.
_UNFAMILIAR = {UNITS["en"][name].measure for name in ("meters", "kilograms", "liters", "ounces")}
_MAX_SHORT = {"en": MAX_SHORT, "zh": 0}
_SPACE = {"en": " ", "zh": ""}  # between a number and its unit
# Chinese measures of which quantities in different units are converted to the smallest unit, if the question asks for
# another measure.
_COMPARED = {UNITS["zh"][name].measure for name in ("元", "米", "克", "升")}
_AREAS_AND_VOLUMES = {UNITS["zh"][name].measure for name in ("平方米", "立方米")}
_LENGTH_UNIT = re.compile("(?<![方分厘毫千])[千分厘毫]?米")
_PRICED_UNIT = "(?:千克|公斤|克|斤|两|升|毫升|米)"
# 每千克5元, 5元一斤, 一斤5元; 6 cm every minute.
_UNIT_OF_A_RATE = {
    "zh": re.compile(
        rf"(?:每|[元块角毛]钱?\s?[一1]\s?|(?<![\d.一-十])[一1](?={_PRICED_UNIT}\s?[\d.]{{1,6}}[元块])|\d一)({unit_names('zh')})"
        r"(?![A-Za-z²³^方半])"
    ),
    "en": re.compile(rf"\d ?({unit_names('en')}) (?:per|an?|each|every) (?:second|minute|hour|day|week|month|year)\b"),
}
_WITH_UNITS_OF_RATES = {UNITS["zh"][name].measure for name in ("米", "克", "升", "平方米")}
_AREA_OR_VOLUME = re.compile(r"(?:平方|立方)(千米|[分厘毫]?米)|毫升|升|公顷|亩|\^|\*\*|[²³㎡㎥]")
_AREA_WITHOUT_UNIT = re.compile("面积|体积|容积")


def convert_units(text: str, mentions: list[NumberMention], language: str) -> list[NumberMention]:
    """
    Convert quantities to the unit that the question asks for: "长2米，剪去45厘米，还剩多少厘米" has 200 and 45 厘米.

    Quantities in different units that the question does not ask for get the smallest of these units (2 kg and 400 g).
    Lengths get decimeters if the question asks for liters, and the unit of an area or a volume that is asked for.
    Quantities get the unit of a rate (4元一斤，买3公斤; $18 a kilo, 250 g). In longer English texts, quantities of
    time, feet and money are converted only where the units differ and the question asks for one of them, since the
    solvers learned these constants. Texts with scales or proportions (but for lengths and scales of maps in Chinese),
    and most with rates for units of time, are left unchanged.
    """
    quantities: dict[int, list[Quantity]] = {}
    for index, mention in enumerate(mentions):
        quantity = _quantity(text, index, mention, language)
        if quantity is not None:
            measure = UNITS[language][quantity.name].measure
            quantities.setdefault(measure, []).append(quantity)
    if not quantities:
        return mentions
    asked_units = _ASKED_UNIT[language].findall(text)
    asked = asked_units[-1].lower() if asked_units else None
    converted = list(mentions)
    for measure, measured in quantities.items():
        if _keep_units(text, measure, measured, language, asked):
            continue
        target = _FIND_TARGET[language](text, mentions, measure, measured, asked)
        if target is not None:
            for quantity in measured:
                converted[quantity.index] = _convert(text, mentions[quantity.index], quantity, target, language)
    return converted


def _keep_units(text: str, measure: int, quantities: list[Quantity], language: str, asked: str | None) -> bool:
    """Return whether the quantities of a measure keep their units because of a scale, proportion or rate."""
    if language == "en" and _priced_unit(text, measure, asked) is not None:
        return False
    if language == "zh" and asked is not None:
        is_asked_for = UNITS["zh"][asked].measure == measure
        if is_asked_for and measure == _LENGTH and _MAP_SCALE.search(text):
            return False
        is_edge = measure == _LENGTH and _edge_of(asked, quantities, language) is not None
        if is_edge or (is_asked_for and measure in _WITH_UNITS_OF_RATES):
            return _PROPORTIONS.search(text) is not None
    is_next_to_rates = measure in _NEXT_TO_RATES[language] or len(text) <= _MAX_SHORT[language]
    patterns = _SCALES if is_next_to_rates else _RATES
    return patterns[language].search(text) is not None


def _priced_unit(text: str, measure: int, asked: str | None) -> str | None:
    """Return the unit of the prices in an English text, $16 a pound, but for familiar units in longer texts."""
    if len(text) > MAX_SHORT and measure not in _UNFAMILIAR:
        return None
    if asked is not None and UNITS["en"][asked].measure == measure:
        return None
    return unit_of_a_price(text, measure)


def _english_target(
    text: str, mentions: list[NumberMention], measure: int, quantities: list[Quantity], asked: str | None
) -> str | None:
    """Return the name of the unit to which the quantities of a measure in an English text are converted, or `None`."""
    units = UNITS["en"]
    sizes = {units[quantity.name].size for quantity in quantities}
    is_unfamiliar = measure in _UNFAMILIAR or len(text) <= MAX_SHORT
    unit_of_a_rate = _unit_of_a_rate(text, measure, "en")
    priced_unit = _priced_unit(text, measure, asked)
    if priced_unit is not None:
        sizes.add(units[priced_unit].size)
        # In longer texts, quantities in larger units than that of a price may be of other things.
        is_largest = units[priced_unit].size == max(sizes)
        return priced_unit if len(sizes) > 1 and (is_largest or len(text) <= MAX_SHORT) else None
    edge = unit_of_areas(text, measure)
    adds_the_edge = asks_for_an_area(text) or edge is None
    if edge is None and measure == units["meters"].measure:
        edge = _edge_of(asked, quantities, "en")
    if asked is not None and units[asked].measure == measure:
        target = asked
        if asked.startswith("dollar") and _has_dollar_sign(text, mentions):
            sizes.add(units[asked].size)
        # "How many cents are 3 dollars?" is a conversion itself.
        if is_unfamiliar and len(mentions) > 1:
            sizes.add(units[asked].size)
    elif edge is not None:
        target = edge
        if adds_the_edge:
            sizes.add(units[target].size)
    elif is_unfamiliar and unit_of_a_rate is not None:
        target = unit_of_a_rate
        sizes.add(units[target].size)
    elif is_unfamiliar and (unit_of_speeds := unit_of_a_speed(text, measure)) is not None:
        target = unit_of_speeds
    elif is_unfamiliar:
        target = _smallest_unit(quantities, "en")
    else:
        return None
    if is_unfamiliar and _RATES_FOR_MEASURES[measure].search(text):
        return None
    if unit_of_a_rate is not None and units[unit_of_a_rate].size != units[target].size:
        # Quantities keep the unit of 2 inches per month.
        return None
    return target if len(sizes) > 1 else None


def _chinese_target(
    text: str, mentions: list[NumberMention], measure: int, quantities: list[Quantity], asked: str | None
) -> str | None:
    """Return the name of the unit to which the quantities of a measure in a Chinese text are converted, or `None`."""
    units = UNITS["zh"]
    sizes = {units[quantity.name].size for quantity in quantities}
    length_unit = None
    if measure == _LENGTH:
        powers = _ASKED_POWER.findall(text)
        length_unit = powers[-1] if powers else _edge_of(asked, quantities, "zh")
    unit_of_a_rate = None
    if measure in _WITH_UNITS_OF_RATES:
        unit_of_a_rate = _unit_of_a_rate(text, measure, "zh")
    if asked is not None and units[asked].measure == measure:
        target = asked
        # 440000平方米合多少公顷 is a conversion itself.
        if len(mentions) > 1:
            sizes.add(units[target].size)
    elif length_unit is not None:
        target = length_unit
        sizes.add(units[target].size)
    elif unit_of_a_rate is not None:
        target = unit_of_a_rate
        sizes.add(units[target].size)
    elif measure in _AREAS_AND_VOLUMES and not _LENGTH_UNIT.search(text):
        target = _smallest_unit(quantities, "zh")
    elif measure in _COMPARED and not (measure == _LENGTH and _AREA_WITHOUT_UNIT.search(text)):
        target = _smallest_unit(quantities, "zh")
    else:
        return None
    if len(sizes) < 2:
        return None
    if measure == _LENGTH and not _fits_areas_and_volumes(text, target):
        return None
    return target


def _edge_of(asked: str | None, lengths: list[Quantity], language: str) -> str | None:
    """Return the unit of lengths for an area or a volume that is asked for in a unit of its own, or `None`."""
    if asked is None:
        return None
    edge = _EDGES[language].get(WRITTEN_NAMES[language].get(asked, asked))
    if edge is None:
        return None
    units = UNITS[language]
    # 100 km for 8 liters of fuel are no edge.
    if any(units[length.name].size > _MAX_EDGE * units[edge].size for length in lengths):
        return None
    return edge


def _fits_areas_and_volumes(text: str, length_unit: str) -> bool:
    """Return whether all areas and volumes of a Chinese text are powers of a unit of lengths."""
    for power in _AREA_OR_VOLUME.finditer(text):
        edge = power[1] or _EDGES["zh"].get(power[0])
        if edge != length_unit:
            return False
    return True


def _rates_for_measures() -> dict[int, re.Pattern[str]]:
    """Return patterns of rates for the units of each measure in English: 2 ounces of detergent to wash a pound."""
    names_of_measures: dict[int, list[str]] = {}
    for name, unit in UNITS["en"].items():
        names_of_measures.setdefault(unit.measure, []).append(name)
    patterns = {}
    for measure, names in names_of_measures.items():
        # "Half an hour" is a time.
        patterns[measure] = re.compile(
            rf"(?<!\b[Hh]alf )(?<!\b[Hh]alf of )\b(?:an?|per|each|every) (?:{'|'.join(names)})\b(?! and a)"
        )
    return patterns


_RATES_FOR_MEASURES = _rates_for_measures()


def _smallest_unit(quantities: list[Quantity], language: str) -> str:
    """Return the name of the smallest unit of quantities."""
    return min(quantities, key=lambda quantity: UNITS[language][quantity.name].size).name


def _unit_of_a_rate(text: str, measure: int, language: str) -> str | None:
    """Return the name of the unit of the first rate of a measure in a text, or `None`."""
    for name in _UNIT_OF_A_RATE[language].findall(text):
        if UNITS[language][name].measure == measure:
            return name
    return None


_FIND_TARGET = {"en": _english_target, "zh": _chinese_target}


def _convert(text: str, mention: NumberMention, quantity: Quantity, target: str, language: str) -> NumberMention:
    """Return a quantity in another unit."""
    target = WRITTEN_NAMES[language].get(target, target)
    ratio = UNITS[language][quantity.name].size / UNITS[language][target].size
    if ratio == 1:
        return mention
    written = text[mention.start : quantity.end]
    value = mention.value * ratio
    literal = literal_of(value)
    gap = text[mention.end : quantity.end - len(quantity.name)]
    if mention.unit or not gap:
        gap = _SPACE[language]
    return replace(
        mention,
        text=written,
        end=quantity.end,
        value=value,
        unit=gap + target,
        note=f"{written} was read as {literal}{gap}{target}, the unit of the question or of another quantity",
        written_literal=literal,
    )


def _quantity(text: str, index: int, mention: NumberMention, language: str) -> Quantity | None:
    """Return the quantity of a number with a unit behind it or, in "an hour and a half", inside of it, or `None`."""
    if not mention.unit:
        match = _UNIT_BEHIND[language].match(text, mention.end)
        if match is None:
            return None
        return Quantity(index, match[1], match.end())
    name = mention.unit.strip()
    if name in UNITS[language]:
        return Quantity(index, name, mention.end)
    return None


def _has_dollar_sign(text: str, mentions: list[NumberMention]) -> bool:
    """Return whether a number has a dollar sign before it."""
    return any(text.endswith("$", 0, mention.start) for mention in mentions)
