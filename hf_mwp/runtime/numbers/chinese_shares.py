"""Forms of shares and halves in Chinese texts: 百分之二十五, 四分之1, 八五折, 三成, 四倍, 一半, 3千克半."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import to_half_width

from .chinese_numbers import CHARACTER, CHARACTERS, DECIMALS, DIGITS, NUMBER, NUMERAL, START, UNIT, number_of
from .number_form import FormMatch, NumberForm, fraction_literal, number_match, percent_literal, text_around


# Units of which one, half and a bit more are written as "3千克半".
_DIVISIBLE = (
    "千克|公斤|小时|个小时|个月|个钟头|千米|公里|星期|斤|两|吨|升|米|年|天|元|块钱|块|岁|倍|圈|亩|里"
    "|个|瓶|袋|箱|杯|碗|盒|筐|桶|片|勺|尺|丈|分钟|板|车|捆|锅|盘|页|顿"
)


def _percent(match: re.Match[str], text: str) -> FormMatch | None:
    """百分之二十五, 千分之3."""
    value = number_of(match["number"])
    if value is None:
        return None
    if match["scale"] == "百":
        return number_match(match, value / 100, percent_literal(value))
    return number_match(match, value / {"千": 1000, "万": 10_000}[match["scale"]])


def _per_mille(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(to_half_width(match[1])) / 1000)


def _percent_of_fraction(match: re.Match[str], text: str) -> FormMatch | None:
    whole, numerator, denominator = map(int, match.groups("0"))
    if not denominator:
        return None
    return number_match(match, (whole + Fraction(numerator, denominator)) / 100)


def _fraction(match: re.Match[str], text: str) -> FormMatch | None:
    """四分之一, 4分之一, 四分之1, 3又二分之一."""
    groups = match.groupdict("零")
    whole = number_of(groups["whole"])
    numerator = number_of(groups["numerator"])
    denominator = number_of(groups["denominator"])
    if whole is None or numerator is None or not denominator:
        return None
    literal = None
    if whole.denominator == numerator.denominator == denominator.denominator == 1:
        literal = fraction_literal(int(whole), int(numerator), int(denominator))
    return number_match(match, whole + numerator / denominator, literal)


def _discount(match: re.Match[str], text: str) -> FormMatch | None:
    """八折, 8.5折, 八五折, 85折."""
    written = to_half_width(match["number"])
    before = text[max(0, match.start() - 4) : match.start()]
    has_word = _DISCOUNT_BEFORE.search(before) or _DISCOUNT_AFTER.match(text, match.end())
    has_price = _PRICE.search(text_around(match, text))
    if not has_word and (written == "对" or not has_price or not _BARE_DISCOUNT.match(text, match.end())):
        return None
    # A rope in two or three folds is no discount.
    if not has_price and _FOLDED.search(text_around(match, text)):
        return None
    # 0.8折 is not 8 %: texts with this form calculate with 0.8.
    if written.startswith("0"):
        return None
    if written == "对":
        return number_match(match, Fraction(1, 2), "50%")
    tenths = _tenths(written)
    if tenths is None:
        return None
    return number_match(match, tenths / 10, percent_literal(10 * tenths))


_FOLDED = re.compile("绳|线|井|纸|布条|铁丝|彩带")
_PRICE = re.compile("元|块|钱|价|商店|商场|超市|促销")
_BARE_DISCOUNT = re.compile(r"[再，。；、,;！!）)\s]|价|买|促|大|活动|券|起|\Z")
_DISCOUNT_BEFORE = re.compile(
    r"(?:打|打了|打出|降到|按|以|享受|享|先|再|第?[一二两三四五六七八九十\d][件杯双个份支盒瓶套张本])[“「\"]?\Z"
)
_DISCOUNT_AFTER = re.compile(r"[”」\"]?(?:出售|优惠|的优惠|销售|促销|酬宾|售|卖|的价格|的价钱|[以之]?后)")


def _half_price(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(1, 2), "50%")


def _tenths(written: str) -> Fraction | None:
    """Return the number of tenths: 8.5 for 八五, 8.5 and 85."""
    if re.fullmatch("[一二三四五六七八九]{2}", written):
        written = written.translate(DECIMALS)
    value = number_of(written)
    if value is None:
        return None
    if written.isdecimal() and len(written) == 2:
        value /= 10
    return value if 0 < value < 10 else None


def _share_in_tenths(match: re.Match[str], text: str) -> FormMatch | None:
    """二成, 2成, 三成五."""
    tenths = _tenths(to_half_width(match["tenths"]))
    if tenths is None:
        return None
    if match["hundredths"]:
        tenths += Fraction(int(match["hundredths"].translate(DECIMALS)), 10)
    return number_match(match, tenths / 10, percent_literal(10 * tenths))


def _ratio(match: re.Match[str], text: str) -> FormMatch | None:
    """按3比2分: 3:2, as the solvers know it."""
    value = number_of(match["number"])
    if value is None:
        return None
    return number_match(match, value, unit=":")


def _times(match: re.Match[str], text: str) -> FormMatch | None:
    """四倍, 两倍半."""
    value = number_of(match["number"])
    if value is None:
        return None
    if match["half"]:
        return number_match(match, value + Fraction(1, 2), unit="倍")
    # The digits of 4倍 are a plain number. 增加一倍 (to double) is calculated with the constant 2.
    if match["number"][0].isdecimal() or match["number"] == "一":
        return None
    return number_match(match, value, group="number")


def _points(match: re.Match[str], text: str) -> FormMatch | None:
    """涨了5个点: 5%."""
    value = number_of(match["number"])
    if value is None:
        return None
    start = match.start("number")
    return FormMatch(start, match.end(), value / 100, percent_literal(value))


def _doublings(match: re.Match[str], text: str) -> FormMatch:
    """翻了一番: 2倍."""
    return number_match(match, 2 ** int(number_of(match["number"])), unit="倍")


def _half(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(1, 2))


def _one_half(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(1, 2), "(1/2)")


def _half_more(match: re.Match[str], text: str) -> FormMatch | None:
    """比原来多一半."""
    clause = re.split("[，。；,;]", text[max(0, match.start() - 24) : match.start()])[-1]
    if "比" not in clause:
        return None
    return _one_half(match, text)


def _and_a_half(match: re.Match[str], text: str) -> FormMatch | None:
    """3千克半, 两年半, 2个半小时, 5块半."""
    value = number_of(match["number"])
    if value is None:
        return None
    unit = match["unit"]
    if unit not in ("个", "个月"):
        unit = unit.removeprefix("个")
    return number_match(match, value + Fraction(1, 2), unit=unit)


def _minutes_and_a_half(match: re.Match[str], text: str) -> FormMatch | None:
    """2分半钟."""
    value = number_of(match["number"])
    if value is None:
        return None
    return number_match(match, value + Fraction(1, 2), unit="分钟")


def _halves_of_counted(match: re.Match[str], text: str) -> FormMatch | None:
    """2个半小时: the unit follows."""
    value = number_of(match["number"])
    if value is None:
        return None
    return number_match(match, value + Fraction(1, 2))


CHINESE_SHARES = (
    NumberForm("percent", re.compile(rf"{START}(?P<scale>[百千万])分之\s?(?P<number>{NUMBER})"), _percent, "分之"),
    NumberForm("per mille", re.compile(rf"{START}({DIGITS})\s?‰"), _per_mille, "‰"),
    NumberForm(
        "percent of a fraction",
        re.compile(r"(?<![\d./])(?:(\d{1,3})\s)?[(（]?(\d{1,3})[/／](\d{1,4})[)）]?[%％]"),
        _percent_of_fraction,
        "% ％",
    ),
    NumberForm(
        "fraction",
        re.compile(
            rf"{START}(?:(?P<whole>{NUMBER})\s?又\s?)?(?P<denominator>{NUMBER})\s?分之\s?(?P<numerator>{NUMBER})"
            rf"(?!{CHARACTER})"
        ),
        _fraction,
        "分之",
    ),
    NumberForm(
        "mixed number",
        re.compile(
            rf"{START}(?P<whole>{NUMERAL})\s?又\s?(?P<numerator>\d{{1,4}})[/／](?P<denominator>\d{{1,4}})(?![\d/])"
        ),
        _fraction,
        "又",
    ),
    NumberForm(
        "discount",
        re.compile(
            rf"{START}(?P<number>对|\d{{1,2}}(?:[.．]\d{{1,2}})?|[一二三四五六七八九]{{1,2}})\s?折(?![叠纸线断返])"
        ),
        _discount,
        "折",
    ),
    NumberForm("half price", re.compile("半价(?!票)"), _half_price, "半价"),
    NumberForm(
        "tenths",
        re.compile(
            rf"{START}(?P<tenths>\d(?:[.．]\d)?|[一二两三四五六七八九])\s?成(?P<hundredths>[一二三四五六七八九]|[1-9](?![\d.．]))?"
            r"(?=\s|\s?(?:[，。．；、,;.？?！!）)]|后|多|时|是|给|用|已|都|的[利产]|定价|出售|卖|\Z|左右|以上))"
        ),
        _share_in_tenths,
        "成",
    ),
    NumberForm(
        "ratios in words",
        re.compile(
            rf"{START}(?P<number>\d{{1,3}}|[一二两三四五六七八九十])比(?=(?:\d{{1,3}}|[一二两三四五六七八九十])(?:分|的比|来分|混合|配|调))"
        ),
        _ratio,
        "比",
    ),
    NumberForm("times", re.compile(rf"{START}(?P<number>{NUMBER})\s?倍(?P<half>半)?"), _times, "倍"),
    NumberForm(
        "points of percentages",
        re.compile(
            rf"(?<=[涨跌降升增减化率])了?(?P<number>{DIGITS}|[一二两三四五六七八九十]{{1,2}})个(?:百分)?点(?!心|子|数|钟)"
        ),
        _points,
        "个点 百分点",
    ),
    NumberForm("doublings", re.compile("翻(?:了|上)?(?P<number>[一1两二2三3])番"), _doublings, "番"),
    NumberForm(
        "一半",
        re.compile(r"(?<![一二两三四五六七八九十大小多前后])一半(?!\s?(?:[的个米天年月里张条块只支路时]))"),
        _one_half,
        "一半",
    ),
    NumberForm("half more", re.compile("(?<=多)一半"), _half_more, "多一半"),
    NumberForm("半数", re.compile("(?<![一过大])半数(?=[是为的，。])"), _one_half, "半数"),
    NumberForm(
        "half after a unit",
        re.compile(
            rf"{START}(?P<number>{NUMBER})\s?(?P<unit>{_DIVISIBLE})半(?![价径圆数截途路空票费夜工个边径斤年天小])"
        ),
        _and_a_half,
        "半",
    ),
    NumberForm(
        "minutes and a half",
        re.compile(rf"{START}(?P<number>{NUMBER})(?P<unit>分)半(?:钟|(?=[，。,跑走游骑可能]|行驶))"),
        _minutes_and_a_half,
        "分半",
    ),
    NumberForm(
        "half between counter and unit",
        re.compile(rf"{START}(?P<number>{NUMBER})个半(?=小时|月|钟头)"),
        _halves_of_counted,
        "个半",
    ),
    NumberForm(
        "half before a unit",
        re.compile(
            rf"(?<![上下前后大小多对个一\d{CHARACTERS}])一?半(?={UNIT})(?![径圆数途路夜价]|年级|天然|年[按=＝])"
        ),
        _half,
        "半",
    ),
)
