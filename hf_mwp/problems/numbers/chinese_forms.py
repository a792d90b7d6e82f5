"""Forms of numbers in Chinese texts: 百分之二十五, 四分之1, 八五折, 三成, 半小时, 3千克半, 伍仟, 3元5角, 8:30."""

import re
from fractions import Fraction

from ...expressions.numbers import to_half_width
from .chinese_numerals import integer_of
from .number_form import CONTEXT, FormMatch, NumberForm, fraction_literal, no_number, number_match, percent_literal


_CHARACTERS = "零〇○一二两三四五六七八九十百千廿卅"
_CHARACTER = rf"(?:[{_CHARACTERS.replace('千', '')}]|千(?![米克瓦升]))"  # 千米 and 千克 are units
_NUMERAL = rf"{_CHARACTER}{{1,16}}"
_DIGITS = r"\d{1,12}(?:[.．]\d{1,9})?"
_NUMBER = rf"(?:{_DIGITS}|{_NUMERAL}(?:点[零〇一二三四五六七八九]{{1,9}})?)"
_START = rf"(?<![\d.．{_CHARACTERS}])"  # not inside of another number
_DECIMALS = str.maketrans("零〇一二三四五六七八九", "00123456789")
_CAPITALS = str.maketrans("壹贰貳叁參肆伍陆陸柒捌玖拾佰仟萬億○", "一二二三三四五六六七八九十百千万亿〇")

# Units of counts, sizes and times, the longer ones first.
COUNTERS = (
    "个 只 本 支 枝 张 条 辆 棵 株 块 朵 盒 根 袋 把 件 人 名 位 筐 箱 瓶 桶 包 页 行 排 层 间 座 架 台 头 匹 双 "
    "套 副 组 次 遍 圈 堆 束 串 杯 碗 盘 盆 罐 听 节 段 户 场 份 颗 粒 片 面 幅 封 篇 句 题 道 步 壶 篮 捆 枚 种 "
    "艘 滴 车 人次 小组 班级"
)
MEASURES = (
    "公顷 平方千米 平方米 平方分米 平方厘米 立方米 立方分米 立方厘米 千米 公里 分米 厘米 毫米 米 千克 公斤 "
    "毫克 克 吨 斤 毫升 升 元 角 小时 分钟 秒钟 秒 天 年 个月 星期 岁 亩"
)
_COUNTER = "|".join(sorted(COUNTERS.split(), key=len, reverse=True))
_MEASURE = "|".join(sorted(MEASURES.split(), key=len, reverse=True))
_UNIT = f"(?:{_MEASURE}|{_COUNTER}|块钱|钱)"
# Units of which one, half and a bit more are written as "3千克半".
_DIVISIBLE = "千克|公斤|小时|个小时|个月|个钟头|千米|公里|星期|斤|吨|升|米|年|天|元|块钱|块|岁|倍|圈|亩|里"


def number_of(written: str) -> Fraction | None:
    """Return the value of digits or of a Chinese numeral, or `None` if it is not valid."""
    written = to_half_width(written)
    if written[:1].isdecimal():
        return Fraction(written)
    whole, point, decimals = written.translate(_CAPITALS).replace("廿", "二十").replace("卅", "三十").partition("点")
    value = integer_of(whole)
    if value is None or not point:
        return None if value is None else Fraction(value)
    return value + Fraction(int(decimals.translate(_DECIMALS)), 10 ** len(decimals))


def _percent(match: re.Match[str], text: str) -> FormMatch | None:
    """百分之二十五, 千分之3."""
    value = number_of(match["number"])
    if value is None:
        return None
    parts = {"百": 100, "千": 1000, "万": 10_000}[match["parts"]]
    literal = percent_literal(value) if parts == 100 else None
    return number_match(match, value / parts, literal)


def _per_mille(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(to_half_width(match[1])) / 1000)


def _percent_of_fraction(match: re.Match[str], text: str) -> FormMatch | None:
    whole, numerator, denominator = (int(part or 0) for part in match.groups())
    if not denominator:
        return None
    return number_match(match, (whole + Fraction(numerator, denominator)) / 100)


def _fraction(match: re.Match[str], text: str) -> FormMatch | None:
    """四分之一, 4分之一, 四分之1, 3又二分之一."""
    written = match.group("whole", "numerator", "denominator")
    whole, numerator, denominator = (number_of(part or "零") for part in written)
    if whole is None or numerator is None or not denominator:
        return None
    literal = None
    if {1} == {part.denominator for part in (whole, numerator, denominator)}:
        literal = fraction_literal(int(whole), int(numerator), int(denominator))
    return number_match(match, whole + numerator / denominator, literal)


def _discount(match: re.Match[str], text: str) -> FormMatch | None:
    """八折, 8.5折, 八五折, 85折."""
    written = to_half_width(match["number"])
    before = text[max(0, match.start() - 4) : match.start()]
    if not _DISCOUNT_BEFORE.search(before) and not _DISCOUNT_AFTER.match(text, match.end()):
        return None
    # 0.8折 is not 8 %: texts with this form calculate with 0.8.
    if written.startswith("0"):
        return None
    value = Fraction(1, 2) * 10 if written == "对" else _tenths(written)
    return None if value is None else number_match(match, value / 10, percent_literal(10 * value))


_DISCOUNT_BEFORE = re.compile(r"(?:打|打了|打出|降到|按|以|享受|享)[“「\"]?\Z")
_DISCOUNT_AFTER = re.compile(r"[”」\"]?(?:出售|优惠|的优惠|销售|促销|酬宾|售|卖|的价格|的价钱|后)")


def _tenths(written: str) -> Fraction | None:
    """Return the number of tenths: 8.5 for 八五, 8.5 and 85."""
    if len(written) == 2 and written[0] in "一二三四五六七八九" and written[1] in "一二三四五六七八九":
        return Fraction(int(written.translate(_DECIMALS)), 10)
    value = number_of(written)
    if value is not None and written.isdecimal() and len(written) == 2:
        value /= 10
    return value if value is not None and 0 < value < 10 else None


def _share_in_tenths(match: re.Match[str], text: str) -> FormMatch | None:
    """二成, 2成, 三成五."""
    tenths = _tenths(to_half_width(match["tenths"]))
    if tenths is None:
        return None
    if match["hundredths"]:
        tenths += Fraction(int(match["hundredths"].translate(_DECIMALS)), 10)
    return number_match(match, tenths / 10, percent_literal(10 * tenths))


def _times(match: re.Match[str], text: str) -> FormMatch | None:
    """四倍, 两倍半."""
    value = number_of(match["number"])
    if value is None:
        return None
    if match["half"]:
        return number_match(match, value + Fraction(1, 2), unit="倍")
    # The digits of 4倍 are a plain number. 增加一倍 (to double) is calculated with the constant 2.
    is_read_already = match["number"][0].isdecimal() or match["number"] == "一"
    return None if is_read_already else number_match(match, value, group="number")


def _half(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(1, 2))


def _one_half(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(1, 2), "(1/2)")


def _and_a_half(match: re.Match[str], text: str) -> FormMatch | None:
    """3千克半, 两年半, 2个半小时, 5块半."""
    value = number_of(match["number"])
    if value is None:
        return None
    unit = match["unit"].removeprefix("个") if match["unit"] not in ("个", "个月") else match["unit"]
    return number_match(match, value + Fraction(1, 2), unit=unit)


def _halves_of_counted(match: re.Match[str], text: str) -> FormMatch | None:
    """2个半小时: the unit follows."""
    value = number_of(match["number"])
    return None if value is None else number_match(match, value + Fraction(1, 2))


def _quarter_hours(match: re.Match[str], text: str) -> FormMatch | None:
    value = number_of(match["number"])
    return None if value is None else number_match(match, 15 * value, unit="分钟")


def _dozens(match: re.Match[str], text: str) -> FormMatch | None:
    value = Fraction(1, 2) if match["number"] == "半" else number_of(match["number"])
    return None if value is None else number_match(match, 12 * value, unit="个")


def _formal(match: re.Match[str], text: str) -> FormMatch | None:
    """伍仟, 廿四."""
    value = number_of(match[0])
    return None if value is None else number_match(match, value)


def _below_zero(match: re.Match[str], text: str) -> FormMatch | None:
    value = number_of(match["number"])
    return None if value is None else number_match(match, -value)


def _decimal_without_zero(match: re.Match[str], text: str) -> FormMatch | None:
    """`.5` in 一支铅笔.5元. After another quantity (3支.5个), the point is a full stop."""
    clause = re.split("[，。；、,;？?！!\n.]", text[max(0, match.start() - 24) : match.start()])[-1]
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


def _shortened_money(match: re.Match[str], text: str) -> FormMatch | None:
    """5块5: the second number counts tenths."""
    yuan, jiao = number_of(match["yuan"]), number_of(match["jiao"])
    if yuan is None or jiao is None or jiao >= 10 or jiao.denominator != 1:
        return None
    return number_match(match, yuan + jiao / 10, unit="元")


def _scaled(match: re.Match[str], text: str) -> FormMatch | None:
    """3万5千: one number."""
    total = Fraction(0)
    for number, scale in re.findall(rf"({_NUMBER})([万千百])", match[0]):
        value = number_of(number)
        if value is None:
            return None
        total += value * {"万": 10_000, "千": 1000, "百": 100}[scale]
    return number_match(match, total)


# Units of one quantity, each with the number of the smallest of them.
_SCALES_OF_UNITS = (
    {"元": 100, "块": 100, "块钱": 100, "角": 10, "毛": 10, "分钱": 1, "分": 1},
    {"千米": 10**6, "公里": 10**6, "米": 1000, "分米": 100, "厘米": 10, "毫米": 1},
    {"吨": 10**6, "千克": 1000, "公斤": 1000, "克": 1},
    {"小时": 3600, "个小时": 3600, "时": 3600, "分钟": 60, "分": 60, "秒钟": 1, "秒": 1},
    {"年": 12, "个月": 1},
    {"升": 1000, "毫升": 1},
)
_UNITS_OF_COMPOUNDS = "|".join(sorted({unit for units in _SCALES_OF_UNITS for unit in units}, key=len, reverse=True))


def _compound(match: re.Match[str], text: str) -> FormMatch | None:
    """3元5角, 1米2分米, 2小时30分钟, 1分20秒: one number in the unit that is asked for, or in the larger unit."""
    large, small = match["large"], match["small"]
    units = next((units for units in _SCALES_OF_UNITS if large in units and small in units), None)
    first, second = number_of(match["first"]), number_of(match["second"])
    # 8时30分 and 1年5个月 may be points in time.
    if units is None or units[large] <= units[small] or None in (first, second) or large == "时":
        return None
    smallest = first * units[large] + second * units[small]
    asked_small = re.search(f"(?:多少|几)个?{small}", text[-CONTEXT:]) is not None
    unit = small if asked_small else large
    return number_match(match, smallest / units[unit], unit=unit)


_TIME_WORDS = re.compile(
    "上午|下午|早上|晚上|中午|早晨|傍晚|凌晨|时刻|开始|结束|出发|到达|开往|开车|上学|放学|放映|起床"
)


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """上午8:30: in minutes if minutes are asked for, otherwise in hours."""
    hours, minutes = int(match["hours"]), int(match["minutes"])
    around = text[max(0, match.start() - CONTEXT) : match.end() + CONTEXT]
    if hours > 24 or minutes > 59 or not _TIME_WORDS.search(around) or "比" in around:
        return None
    if match["half_day"] in ("下午", "晚上", "傍晚") and hours < 12:
        hours += 12
    minutes += 60 * hours
    asks_minutes = re.search("(?:多少|几)分", text[-CONTEXT:]) is not None
    value = Fraction(minutes) if asks_minutes else Fraction(minutes, 60)
    start = match.start("hours")
    number = number_match(match, value, unit="分" if asks_minutes else "时", note="")
    return FormMatch(start, number.end, number.value, number.literal, number.unit)


def _scientific(match: re.Match[str], text: str) -> FormMatch:
    value = Fraction(to_half_width(match["mantissa"])) * 10 ** int(match["exponent"])
    return number_match(match, value)


def _misread(match: re.Match[str], text: str) -> FormMatch:
    """l2, 1O: letters for digits, as text recognition writes them."""
    literal = to_half_width(match[0].translate(str.maketrans("lI|oO·", "11100.")))
    return number_match(match, Fraction(literal), note=f"{match[0]} was read as {literal}")


def _numeral(match: re.Match[str], text: str) -> FormMatch | None:
    """两个, 五盒, 三十页."""
    value = number_of(match["number"])
    return None if value is None else number_match(match, value, group="number")


# Words in which a numeral before a unit is no number of the problem: ordinals (第三天), references to things that the
# text has named before (这两个, 甲乙两人, 相邻两棵, 两车), names (三角形, 百位).
_NOT_BEFORE = "(?<![第周这那前后上下头每甲乙丙丁师徒邻A-Za-z])(?<!星期)"
_REFERENCE = "[两二](?=[人车种题组座艘队位头])"
_NOT_AFTER = "(?!角形|角板|角尺|边形|面体|人称|年级|月份)"
_SIZE = "(?:元|千克|公斤|克|吨|毫升|升|平方米|平方分米|平方厘米|千米|公里|分米|厘米|毫米|米|小时|个小时|分钟|秒|岁)"


def _numeral_among_digits(match: re.Match[str], text: str) -> FormMatch | None:
    """两个 in a text that has counted the same before: 小明有3个苹果，小红有两个苹果."""
    noun = text[match.end("unit") : match.end("unit") + 1]
    counted = (
        re.search(rf"\d\s?{match['unit']}{re.escape(noun)}", text[max(0, match.start() - CONTEXT) : match.start()])
        is not None
    )
    return _numeral(match, text) if counted else None


CHINESE_FORMS = (
    NumberForm("percent", re.compile(rf"{_START}(?P<parts>[百千万])分之\s?(?P<number>{_NUMBER})"), _percent, "分之"),
    NumberForm("per mille", re.compile(rf"{_START}({_DIGITS})\s?‰"), _per_mille, "‰"),
    NumberForm(
        "percent of a fraction",
        re.compile(r"(?<![\d./])(?:(\d{1,3})\s)?[(（]?(\d{1,3})[/／](\d{1,4})[)）]?[%％]"),
        _percent_of_fraction,
        "% ％",
    ),
    NumberForm(
        "fraction",
        re.compile(
            rf"{_START}(?:(?P<whole>{_NUMBER})\s?又\s?)?(?P<denominator>{_NUMBER})\s?分之\s?(?P<numerator>{_NUMBER})"
            rf"(?![{_CHARACTERS}])"
        ),
        _fraction,
        "分之",
    ),
    NumberForm(
        "mixed number",
        re.compile(
            rf"{_START}(?P<whole>{_NUMERAL})\s?又\s?(?P<numerator>\d{{1,4}})[/／](?P<denominator>\d{{1,4}})(?![\d/])"
        ),
        _fraction,
        "又",
    ),
    NumberForm(
        "discount",
        re.compile(
            rf"{_START}(?P<number>对|\d{{1,2}}(?:[.．]\d{{1,2}})?|[一二三四五六七八九]{{1,2}})\s?折(?![叠纸线断返])"
        ),
        _discount,
        "折",
    ),
    NumberForm(
        "tenths",
        re.compile(
            rf"{_START}(?P<tenths>\d(?:[.．]\d)?|[一二两三四五六七八九])\s?成(?P<hundredths>[一二三四五六七八九])?"
            r"(?=\s?(?:[，。．；、,;.？?！!）)]|后|多|时|的[利产]|\Z|左右|以上))"
        ),
        _share_in_tenths,
        "成",
    ),
    NumberForm("times", re.compile(rf"{_START}(?P<number>{_NUMBER})\s?倍(?P<half>半)?"), _times, "倍"),
    NumberForm(
        "一半",
        re.compile(r"(?<![一二两三四五六七八九十大小多前后])一半(?!\s?(?:[的个米天年月里张条块只支路时]))"),
        _one_half,
        "一半",
    ),
    NumberForm(
        "half after a unit",
        re.compile(
            rf"{_START}(?P<number>{_NUMBER})\s?(?P<unit>{_DIVISIBLE})半(?![价径圆数截途路空票费夜工个边径斤年天小])"
        ),
        _and_a_half,
        "半",
    ),
    NumberForm(
        "half between counter and unit",
        re.compile(rf"{_START}(?P<number>{_NUMBER})个半(?=小时|月|钟头)"),
        _halves_of_counted,
        "个半",
    ),
    NumberForm(
        "half before a unit",
        re.compile(
            rf"(?<![上下前后大小多对个一\d{_CHARACTERS}])一?半(?={_UNIT})(?![径圆数途路夜价]|年级|天然|年[按=＝])"
        ),
        _half,
        "半",
    ),
    NumberForm("quarter hours", re.compile(rf"{_START}(?P<number>[一二两三1-3])刻钟"), _quarter_hours, "刻钟"),
    NumberForm(
        "dozens",
        re.compile(rf"{_START}(?P<number>[一二两三四五六七八九十半])打(?=[铅鸡鸭啤酒毛手信袜笔，。；、有是要的]|\Z)"),
        _dozens,
        "打",
    ),
    NumberForm(
        "formal numerals",
        re.compile(
            r"[壹贰貳叁參肆伍陆陸柒捌玖][拾佰仟][零壹贰貳叁參肆伍陆陸柒捌玖拾佰仟万萬亿億]{0,20}"
            r"|[廿卅][一二三四五六七八九]?(?=" + _UNIT + ")"
        ),
        _formal,
        "拾 佰 仟 廿 卅",
    ),
    NumberForm("below zero", re.compile(rf"(?:零下\s?|(?<![\w])负)(?P<number>{_NUMBER})"), _below_zero, "零下 负"),
    NumberForm(
        "several scales",
        re.compile(rf"{_START}(?:{_DIGITS}|{_NUMERAL})万(?:{_DIGITS}|{_NUMERAL})千(?![米克瓦升])"),
        _scaled,
        "万",
    ),
    NumberForm(
        "shortened money",
        re.compile(
            rf"{_START}(?P<yuan>{_DIGITS}|[一二两三四五六七八九十]{{1,3}})(?:块钱?|元)"
            rf"(?P<jiao>\d|[一二三四五六七八九])(?=[，。；、,;？?！!）)\s]|一[斤本个支盒瓶千公]|\Z|的)"
        ),
        _shortened_money,
        "块 元",
    ),
    NumberForm(
        "several units",
        re.compile(
            rf"{_START}(?P<first>{_NUMBER})\s?(?P<large>{_UNITS_OF_COMPOUNDS})\s?零?"
            rf"(?P<second>{_NUMBER})\s?(?P<small>{_UNITS_OF_COMPOUNDS})(?![之形板度])"
        ),
        _compound,
    ),
    NumberForm(
        "clock time",
        re.compile(
            r"(?P<half_day>上午|下午|早上|晚上|傍晚)?\s?(?<![\d:：.．])(?P<hours>\d{1,2})[:：](?P<minutes>\d\d)(?![\d:：.．])"
        ),
        _clock_time,
        ": ：",
    ),
    NumberForm(
        "scientific",
        re.compile(
            rf"(?<![\d.])(?P<mantissa>\d{{1,9}}(?:\.\d{{1,9}})?)\s?[×xX✕]\s?10(?:\^|\*\*)(?P<exponent>\d{{1,2}})(?={_UNIT})"
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
        re.compile(rf"(?<![\d.，,、：:])\d{{1,3}}(?:，\d{{3}}){{1,4}}(?={_MEASURE})"),
        _full_width_group,
        "，",
    ),
    NumberForm(
        "groups after spaces",
        re.compile(rf"(?<![\d.，,、：: ])\d{{1,3}}(?: \d{{3}}){{1,4}}(?=\s?{_UNIT})"),
        _joined,
    ),
    NumberForm(
        "text recognition",
        re.compile(rf"(?<![A-Za-z\d.．])(?:[lI|]\d{{1,4}}|\d{{1,3}}[oO]|\d{{1,3}}·\d{{1,2}})(?=\s?{_UNIT})"),
        _misread,
        "l I | o O ·",
    ),
    NumberForm(
        "numerals of two characters, or before sizes",
        re.compile(
            rf"{_START}{_NOT_BEFORE}(?P<number>(?!十分(?!钟)|[十百千]+位)(?:(?=.{{0,3}}[十百千廿卅])[一二两三四五六七八九十百廿卅]{_CHARACTER}{{1,8}}"
            rf"(?={_UNIT})|(?:[二三四五六七八九]|两(?=[千公厘分毫]米|[吨升元小])|十)(?={_SIZE}))){_NOT_AFTER}"
        ),
        _numeral,
    ),
    NumberForm(
        "numerals before the counter of an earlier number",
        re.compile(
            rf"(?<=[有买吃用送给拿卖借放装得取了])(?P<number>[两三四五六七八九])(?P<unit>{_COUNTER}){_NOT_AFTER}"
        ),
        _numeral_among_digits,
    ),
    NumberForm("names", re.compile(r"(?<![A-Za-z\d])(?:[GDKTZC]\d{1,4}(?=次|列车)|[Mm][Pp][34]|H2O|CO2)"), no_number),
)
"""Forms that are read in each Chinese text, in the order in which they are tried."""

CHINESE_COUNTS = (
    NumberForm(
        "numerals before units",
        re.compile(
            rf"{_START}{_NOT_BEFORE}(?P<number>(?!{_REFERENCE}|一(?!{_CHARACTER})|十分(?!钟)|[十百千]+位|[零万])(?:{_CHARACTER}|(?<!\d)(?<!\s)万){{1,16}}"
            rf"(?:点[零〇一二三四五六七八九]{{1,9}})?)(?={_UNIT}){_NOT_AFTER}"
        ),
        _numeral,
    ),
)
"""Numerals before unit words (两个, 五盒) in texts with digits."""
