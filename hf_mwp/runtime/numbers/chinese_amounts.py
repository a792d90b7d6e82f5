"""Forms of amounts and times in Chinese texts: 一刻钟, 3元5角, 1米75, 3万5千, 8:30, 伍仟, 零下5."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import literal_of, to_half_width

from .chinese_numbers import (
    DECIMALS,
    DIGITS,
    MEASURE,
    NUMBER,
    START,
    TIME_WORDS,
    UNIT,
    number_of,
)
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
    if match["half"]:
        value += Fraction(1, 2)
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
    if TIME_WORDS.search(text_around(match, text)):
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


def _scientific(match: re.Match[str], text: str) -> FormMatch:
    value = Fraction(to_half_width(match["mantissa"])) * 10 ** int(match["exponent"])
    return number_match(match, value)


CHINESE_AMOUNTS = (
    NumberForm("quarter hours", re.compile(rf"{START}(?P<number>[一二两三1-3])刻钟"), _quarter_hours, "刻钟"),
    NumberForm(
        "dozens",
        re.compile(
            rf"{START}(?P<number>\d{{1,3}}|[一二两三四五六七八九十半])打(?P<half>半)?(?=[铅鸡鸭啤酒毛手信袜笔蛋面纸杯碗鲜玫，。；、有是要的]|\Z)"
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
