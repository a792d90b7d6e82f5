"""Forms of amounts and times in Chinese texts: 一刻钟, 3元5角, 1米75, 3万5千, 8:30, 伍仟, 零下5."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import to_half_width

from .chinese_numbers import (
    CHARACTERS,
    DECIMALS,
    DIGITS,
    MEASURE,
    MINUTES_OF_PARTS,
    NUMBER,
    START,
    UNIT,
    number_of,
)
from .digit_numbers import literal_of
from .number_form import (
    FormMatch,
    NumberForm,
    asks_for,
    find_scale,
    number_match,
    text_around,
    text_before,
    unit_names,
)


def _quarter_hours(match: re.Match[str], text: str) -> FormMatch | None:
    value = number_of(match["number"])
    if value is None:
        return None
    return number_match(match, 15 * value, unit="分钟")


def _members_of_pairs(match: re.Match[str], text: str) -> FormMatch | None:
    """5双筷子, if the text counts single ones (丢了3根): 10根."""
    value = number_of(match["number"])
    unit = {"筷": "根", "袜": "只", "鞋": "只", "手": "只"}[match["thing"]]
    if value is None or not asks_for(f"(?:多少|几){unit}", text) or asks_for("(?:多少|几)双", text):
        return None
    return number_match(match, 2 * value, unit=unit, note=f"{match[0]} was read as {2 * value}{unit}")


def _dozens(match: re.Match[str], text: str) -> FormMatch | None:
    if match["number"] == "半":
        return number_match(match, 6, unit="个")
    value = number_of(match["number"])
    if value is None or asks_for("(?:多少|几)打", text):
        return None
    return number_match(match, 12 * value, unit="个")


_CAPITALS = "壹贰叁肆伍陆柒捌玖"
_CAPITAL = re.compile("[壹贰叁肆伍陆柒捌玖拾佰仟]")


def _formal(match: re.Match[str], text: str) -> FormMatch | None:
    """伍仟, 廿四; 捌 only next to other numerals of this kind, since 队伍 is no number."""
    value = number_of(match[0])
    if value is None or (match[0] in _CAPITALS and not _has_other_capitals(match, text)):
        return None
    return number_match(match, value)


def _has_other_capitals(match: re.Match[str], text: str) -> bool:
    return len(set(_CAPITAL.findall(text_around(match, text))) - {match[0]}) > 0


def _digit_by_digit(match: re.Match[str], text: str) -> FormMatch | None:
    """二〇一五年, where the question is about years."""
    if not asks_for("(?:多少|几)[年岁]|多大", text):
        return None
    return number_match(match, int(match[0].replace("○", "〇").translate(DECIMALS)))


def _below_zero(match: re.Match[str], text: str) -> FormMatch | None:
    value = number_of(match["number"])
    if value is None or _LOST_GAMES.match(text, match.end()):
        return None
    return number_match(match, -value)


_LOST_GAMES = re.compile(r"\s?[场局盘轮]")


def _decimal_without_zero(match: re.Match[str], text: str) -> FormMatch | None:
    """`.5` in 一支铅笔.5元. After another quantity (3支.5个), the point is a full stop."""
    before = text[max(0, match.start() - 24) : match.start()]
    clause = re.split("[，。；、,;？?！!\n.]", before)[-1]
    if re.search(r"[\d两三四五六七八九十百千]", clause):
        return None
    note = f"{match[0]} was read as 0{match[0]}"
    return number_match(match, Fraction(f"0{to_half_width(match[0])}"), note=note)


def _full_width_group(match: re.Match[str], text: str) -> FormMatch | None:
    literal = to_half_width(match[0]).replace("，", "")
    return number_match(match, int(literal), note=f"{match[0]} was read as {literal}")


def _joined(match: re.Match[str], text: str) -> FormMatch:
    """12 500千克."""
    return number_match(match, int("".join(to_half_width(match[0]).split())))


# Units of one quantity, each with the number of the smallest of them.
_SCALES_OF_UNITS = (
    {"元": 100, "块": 100, "块钱": 100, "角": 10, "毛": 10, "分钱": 1, "分": 1},
    {"千米": 10**6, "公里": 10**6, "米": 1000, "分米": 100, "厘米": 10, "毫米": 1},
    {"吨": 10**6, "千克": 1000, "公斤": 1000, "克": 1},
    {"小时": 3600, "个小时": 3600, "时": 3600, "分钟": 60, "分": 60, "秒钟": 1, "秒": 1},
    {"年": 12, "个月": 1},
    {"升": 1000, "毫升": 1},
    {"斤": 10, "两": 1},
)
_UNITS_OF_COMPOUNDS = unit_names(_SCALES_OF_UNITS)


def _compound(match: re.Match[str], text: str) -> FormMatch | None:
    """3元5角, 1米2分米, 2小时30分钟, 3元2角5分: one number in the unit that is asked for, or in the largest unit."""
    large = match["large"]
    small = match["small"]
    units = find_scale(_SCALES_OF_UNITS, large, small)
    first = number_of(match["first"])
    second = number_of(match["second"])
    # 8时30分 and 1年5个月 may be points in time.
    if units is None or first is None or second is None or (large == "时" and not _is_duration(match, text)):
        return None
    names = [large, small]
    value = first * units[large] + second * units[small]
    last_group = "small"
    smallest = match["smallest"]
    if smallest in units and units[smallest] < units[small]:
        third = number_of(match["third"])
        if third is None:
            return None
        names.append(smallest)
        value += third * units[smallest]
        last_group = "smallest"
    asked = [name for name in names if asks_for(f"(?:多少|几)个?{name}", text)]
    unit = large
    if asked:
        unit = asked[-1]
    elif rated := [name for name in names if re.search(rf"[每/／]个?小?{name}", text_around(match, text))]:
        unit = rated[-1]
    elif large == "角" and asks_for("(?:多少|几)[元块]", text):
        unit = "元"
    value /= units[unit]
    if unit in ("块", "块钱"):
        unit = "元"
    return FormMatch(match.start(), match.end(last_group), value, literal_of(value), unit)


def _is_duration(match: re.Match[str], text: str) -> bool:
    """Return whether 1时40分 is a duration: 1时40分行了200千米."""
    if _TIME_WORDS.search(text_around(match, text)):
        return False
    return _MOVES.match(text, match.end("small")) is not None or _TAKES.search(text_before(match, text)) is not None


_MOVES = re.compile("钟?[共内]?(?:可以?|能)?[行走跑飞骑游驶]")
_TAKES = re.compile("(?:了|用|花|经过|历时|需要?)\\Z")


def _metres(match: re.Match[str], text: str) -> FormMatch | None:
    """1米4, 1米75, 一米四: the second number counts tenths or hundredths."""
    whole = number_of(match["whole"])
    if whole is None:
        return None
    decimals = to_half_width(match["decimals"]).translate(DECIMALS)
    return number_match(match, whole + Fraction(int(decimals), 10 ** len(decimals)), unit=match["unit"])


_TIME_WORDS = re.compile(
    "上午|下午|早上|晚上|中午|早晨|傍晚|凌晨|时刻|开始|结束|出发|到达|开往|开车|开到|上学|放学|放映|起床"
    r"|开门|关门|起飞|降落|营业|睡觉|上课|下课|上班|下班|\d[:：]\d\d\s?[到至~～—-]\s?\d{1,2}[:：]\d\d"
)
_TIME_WITH_MINUTES = re.compile(
    r"[时点](?:[\d零一二三四五六七八九十]{1,3}分|半|[一三]刻|[0-5]\d(?=[到至睡起出开上下放从离去回，,。]))|\d[:：]\d\d"
)
_PART_OF_AN_HOUR = re.compile(r"[\d一二两三四五六七八九十][点时](?:半|[一三]刻)")
_NEXT_DAY = re.compile("(?:第二天|次日|隔天|翌日)(?:的?(?:早上|早晨|清晨|凌晨|上午|中午))?\\Z")
_EARLIER_TIME = re.compile(r"\d[:：]\d\d|[\d一二三四五六七八九十][时点]")
_MORNING = ("上午", "早上", "早晨", "凌晨", "次日", "第二天")
_AFTERNOON = ("下午", "晚上", "傍晚")


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """上午8:30, 7时20分, 两点半: in minutes if minutes are asked for, otherwise in hours."""
    around = text_around(match, text)
    hours = number_of(match["hours"])
    minutes = number_of(match["minutes"] or "零")
    if match["part"]:
        minutes = MINUTES_OF_PARTS[match["part"]]
    if hours is None or minutes is None or hours > 24 or minutes >= 60:
        return None
    if not _TIME_WORDS.search(around) or "比" in around:
        return None
    asks_minutes = asks_for("(?:多少|几)分", text) or "每分" in around
    is_afternoon = hours < 12 and _is_afternoon(match, text, around)
    is_on_the_next_day = _is_on_the_next_day(match, text)
    if is_on_the_next_day:
        hours += 24
    if not (match["minutes"] or match["part"] or asks_minutes):
        if is_on_the_next_day:
            return number_match(match, hours, group="hours")
        # 上午8时 and 下午2时: the equations of the datasets have 14-8. 下午走了2时 is a duration.
        is_time_of_day = text_before(match, text).endswith(_AFTERNOON)
        if not is_afternoon or not is_time_of_day or asks_for("(?:多少|几)点|什么时", text):
            return None
        return number_match(match, hours + 12, group="hours")
    # In words, two times with minutes: 9时 and 35分 may be numbers of their own.
    num_times = len(_TIME_WITH_MINUTES.findall(around))
    if ":" not in match[0] and "：" not in match[0] and num_times < 2 and not _PART_OF_AN_HOUR.search(around):
        return None
    if is_afternoon:
        hours += 12
    value = 60 * hours + minutes
    if asks_minutes:
        return number_match(match, value, unit="分")
    return number_match(match, value / 60, unit="时")


def _is_on_the_next_day(match: re.Match[str], text: str) -> bool:
    """Return whether 24 hours are added: 晚上10:30出发，第二天早上6:30到."""
    before = text_before(match, text)
    return _NEXT_DAY.search(before) is not None and _EARLIER_TIME.search(before) is not None


def _is_afternoon(match: re.Match[str], text: str, around: str) -> bool:
    """Return whether 12 hours are added: after 下午, if the text also has times before noon or of the next day."""
    if not any(word in around for word in _MORNING):
        return False
    before = text_before(match, text)
    last_morning = max(before.rfind(word) for word in _MORNING)
    last_afternoon = max(before.rfind(word) for word in _AFTERNOON)
    return last_afternoon > last_morning


def _scientific(match: re.Match[str], text: str) -> FormMatch:
    value = Fraction(to_half_width(match["mantissa"])) * 10 ** int(match["exponent"])
    return number_match(match, value)


CHINESE_AMOUNTS = (
    NumberForm("quarter hours", re.compile(rf"{START}(?P<number>[一二两三1-3])刻钟"), _quarter_hours, "刻钟"),
    NumberForm(
        "dozens",
        re.compile(
            rf"{START}(?P<number>\d{{1,3}}|[一二两三四五六七八九十半])打(?=[铅鸡鸭啤酒毛手信袜笔，。；、有是要的]|\Z)"
        ),
        _dozens,
        "打",
    ),
    NumberForm(
        "members of pairs",
        re.compile(rf"{START}(?P<number>{NUMBER})双(?=(?P<thing>[筷袜鞋手]))"),
        _members_of_pairs,
        "双",
    ),
    NumberForm(
        "formal numerals",
        re.compile(
            r"[壹贰貳叁參肆伍陆陸柒捌玖][拾佰仟][零壹贰貳叁參肆伍陆陸柒捌玖拾佰仟万萬亿億]{0,20}"
            rf"|(?:[廿卅][一二三四五六七八九]?|[{_CAPITALS}])(?={UNIT})"
        ),
        _formal,
        "拾 佰 仟 廿 卅 壹 贰 叁 肆 伍 陆 柒 捌 玖",
    ),
    NumberForm(
        "below zero",
        re.compile(rf"(?:零下\s?|(?<![\w])负|(?<=[温是为约到低高达作])负)(?P<number>{NUMBER})"),
        _below_zero,
        "零下 负",
    ),
    NumberForm(
        "temperatures below zero",
        re.compile(
            rf"(?<=[\u3400-\u9fff，,、：:（(])(?<![度至到])[-−－–]\s?(?P<number>{DIGITS})(?=\s?(?:℃|°\s?C|摄氏度|度))"
        ),
        _below_zero,
        "℃ ° 度",
    ),
    NumberForm(
        "years in numerals",
        re.compile(r"(?<![零〇○一二三四五六七八九])[一二][零〇○一二三四五六七八九]{3}(?=年(?!前))"),
        _digit_by_digit,
        "年",
    ),
    NumberForm(
        "metres and decimals",
        re.compile(
            rf"{START}(?:(?P<whole>\d{{1,2}}|[一二两三四五六七八九十])(?P<unit>米)(?P<decimals>\d{{1,2}}|[零一二三四五六七八九]{{1,2}})"
            r"(?=[，。；、,;？?！!）)\s高长宽深的]|\Z))"
        ),
        _metres,
        "米",
    ),
    NumberForm(
        "seconds and decimals",
        re.compile(
            r"(?<![\d.．分])(?P<whole>\d{1,3})(?P<unit>秒)(?P<decimals>\d{1,2})(?=[，。；、,;？?！!）)\s的]|\Z)"
        ),
        _metres,
        "秒",
    ),
    NumberForm(
        "several units",
        re.compile(
            # Nothing is consumed: in 1斤2块5毛, the second number belongs to the third.
            rf"{START}(?=(?P<first>{NUMBER})\s?(?P<large>{_UNITS_OF_COMPOUNDS})\s?零?"
            rf"(?P<second>{NUMBER})\s?(?P<small>{_UNITS_OF_COMPOUNDS})(?![之形板度])"
            rf"(?:\s?零?(?P<third>{NUMBER})\s?(?P<smallest>{_UNITS_OF_COMPOUNDS})(?![之形板度]))?)"
        ),
        _compound,
    ),
    NumberForm(
        "clock time",
        re.compile(r"(?<![\d:：.．])(?P<hours>\d{1,2})[:：](?P<minutes>\d\d)(?P<part>)(?![\d:：.．])"),
        _clock_time,
        ": ：",
    ),
    NumberForm(
        "clock time in words",
        re.compile(
            rf"{START}(?P<hours>\d{{1,2}}|[一二两三四五六七八九十]{{1,3}})(?:时|点钟?)"
            rf"(?:(?P<minutes>\d{{1,2}}|[零一二三四五六七八九十]{{1,3}})(?:分(?![钟米之])|(?<=点[0-5]\d)(?=[到至睡起出开上下放从离去回，,。]))|(?P<part>半|[一三]刻(?!钟))|(?![间\d多辰候半{CHARACTERS}]))"
        ),
        _clock_time,
        "时 点",
    ),
    NumberForm(
        "scientific",
        re.compile(
            rf"(?<![\d.])(?P<mantissa>\d{{1,9}}(?:\.\d{{1,9}})?)\s?[×xX✕]\s?10(?:\^|\*\*)(?P<exponent>\d{{1,2}})(?={UNIT})"
        ),
        _scientific,
        "^ **",
    ),
    NumberForm(
        "decimal without zero",
        re.compile(r"(?<=[\u3400-\u9fff])[.．]\d{1,3}(?=元|角|米|千米|千克|公斤|升|吨|厘米|分米)"),
        _decimal_without_zero,
        ". ．",
    ),
    NumberForm(
        "groups after full-width commas",
        re.compile(rf"(?<![\d.，,、：:])\d{{1,3}}(?:，\d{{3}}){{1,4}}(?={MEASURE})"),
        _full_width_group,
        "，",
    ),
    NumberForm(
        "groups after spaces",
        re.compile(rf"(?<![\d.，,、：: ])\d{{1,3}}(?: \d{{3}}){{1,4}}(?=\s?{UNIT})"),
        _joined,
    ),
)
