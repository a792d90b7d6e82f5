"""Forms of amounts of money in Chinese texts: 5块5, 五毛钱, 3块钱, ¥2,880, 1.5w, 3千元."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import literal_of, to_half_width

from .chinese_numbers import COUNTER, DIGITS, MEASURE, NUMBER, START, UNIT, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around


_UNIT_OF_A_PRICE = rf"一(?:{COUNTER}|{MEASURE}|[次方度月面])|两(?:{COUNTER})"
_END_OF_AMOUNT = rf"包邮|[买卖/／]|[，。；、,;？?！!）)\s]|{_UNIT_OF_A_PRICE}|\Z|的|全部?[卖买]|[加减和跟再]|[硬纸]币"


def _shortened_money(match: re.Match[str], text: str) -> FormMatch | None:
    """5块5: the second number counts tenths."""
    yuan = number_of(match["yuan"])
    jiao = number_of(match["jiao"])
    if yuan is None or jiao is None or jiao >= 10 or jiao.denominator != 1:
        return None
    return number_match(match, yuan + jiao / 10, unit="元")


def _shortened_jiao(match: re.Match[str], text: str) -> FormMatch | None:
    """三块二毛五: the third number counts hundredths."""
    yuan = number_of(match["yuan"])
    below_one = _below_one_yuan(match)
    if yuan is None or below_one is None:
        return None
    return number_match(match, yuan + below_one, unit="元")


def _jiao_and_fen(match: re.Match[str], text: str) -> FormMatch | None:
    """五毛六: the second number counts hundredths."""
    value = _below_one_yuan(match)
    if value is None:
        return None
    return number_match(match, value, unit="元")


def _below_one_yuan(match: re.Match[str]) -> Fraction | None:
    """Return the value of the groups `jiao` and `fen` in 元, or `None` if they are no numbers."""
    jiao = number_of(match["jiao"])
    fen = number_of(match["fen"])
    if jiao is None or fen is None:
        return None
    return jiao / 10 + fen / 100


def _jiao(match: re.Match[str], text: str) -> FormMatch | None:
    """五毛钱: in 元, unless the question asks for 角 or 毛."""
    value = number_of(match["number"])
    if value is None:
        return None
    if asks_for("(?:多少|几)[角毛]", text):
        return number_match(match, value, unit="角")
    return number_match(match, value / 10, unit="元")


def _jiao_in_yuan(match: re.Match[str], text: str) -> FormMatch | None:
    """8角: 0.8元 in a text with amounts in 元, unless the question asks for 角."""
    value = number_of(match["number"])
    if value is None or not _IN_YUAN.search(text_around(match, text)):
        return None
    if asks_for("(?:多少|几)个?[角毛分]", text):
        return None
    return number_match(match, value / 10, unit="元", note=f"{match[0]} was read as {literal_of(value / 10)}元")


_IN_YUAN = re.compile(r"(?:\d|多少|几)\s?元")


def _kuai(match: re.Match[str], text: str) -> FormMatch | None:
    """5块钱, 二十块钱."""
    value = number_of(match["number"])
    if value is None:
        return None
    # 一 is an article, except in 一块钱2个.
    if match["number"] == "一" and not _COUNT.match(text, match.end()):
        return None
    return number_match(match, value, unit="元")


_COUNT = re.compile(r"\s?[\d两三四五六七八九十]")


def _with_currency_sign(match: re.Match[str], text: str) -> FormMatch:
    """¥2,880.00: the solvers know the word 元."""
    literal = to_half_width(match["number"]).replace(",", "")
    unit = "元"
    if text.startswith(("元", "块"), match.end()):
        unit = ""
    return number_match(match, Fraction(literal), literal, unit)


_ELECTRICITY = re.compile("灯|瓦|功率|电器|发电|用电|伏")
_MONEY = re.compile("元|块|钱|工资|薪|价|收入")


def _ten_thousands(match: re.Match[str], text: str) -> FormMatch | None:
    """1.5w: 15,000, if it is no power."""
    if _ELECTRICITY.search(text_around(match, text)):
        return None
    value = Fraction(to_half_width(match["number"])) * 10_000
    return number_match(match, value, note=f"{match[0]} was read as {value}")


def _thousands(match: re.Match[str], text: str) -> FormMatch | None:
    """8k: 8000, in a text about money."""
    if not _MONEY.search(text_around(match, text)):
        return None
    value = Fraction(to_half_width(match["number"])) * 1000
    return number_match(match, value, note=f"{match[0]} was read as {value}")


def _hundreds_or_thousands(match: re.Match[str], text: str) -> FormMatch | None:
    """3千元, 5百人, unless thousands or hundreds are asked for."""
    if asks_for(f"(?:多少|几){match['scale']}", text):
        return None
    scale = {"千": 1000, "百": 100}[match["scale"]]
    return number_match(match, Fraction(to_half_width(match["number"])) * scale)


SHORTENED_MONEY = (
    NumberForm(
        "shortened money",
        re.compile(
            rf"{START}(?P<yuan>{DIGITS}|[一二两三四五六七八九十]{{1,3}})(?:块钱?|元)"
            rf"(?P<jiao>\d|[一二三四五六七八九])(?={_END_OF_AMOUNT})"
        ),
        _shortened_money,
        "块 元",
    ),
    NumberForm(
        "shortened money with 角",
        re.compile(
            rf"{START}(?P<yuan>{DIGITS}|[一二两三四五六七八九十]{{1,3}})[块元](?P<jiao>\d|[一二两三四五六七八九])[毛角]"
            rf"(?P<fen>\d|[一二三四五六七八九])(?={_END_OF_AMOUNT})"
        ),
        _shortened_jiao,
        "毛 角",
    ),
    NumberForm(
        "shortened 毛",
        re.compile(
            rf"{START}(?<![块元])(?P<jiao>\d|[一二两三四五六七八九])毛(?P<fen>\d|[一二三四五六七八九])(?={_END_OF_AMOUNT})"
        ),
        _jiao_and_fen,
        "毛",
    ),
)
"""Forms that come before those of several units."""


CHINESE_MONEY = (
    NumberForm(
        "毛",
        re.compile(rf"{START}(?P<number>\d{{1,2}}|[一二两三四五六七八九])毛(?:钱|(?={_END_OF_AMOUNT}))"),
        _jiao,
        "毛",
    ),
    NumberForm(
        "currency sign",
        re.compile(
            r"(?<![A-Za-z\d.．$−–-])[¥￥]\s?(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,2})?|\d{1,9}(?:[.．]\d{1,2})?)(?![\d.,])"
        ),
        _with_currency_sign,
        "¥ ￥",
    ),
    NumberForm(
        "w",
        re.compile(
            r"(?<=[\u3400-\u9fff¥￥])(?P<number>\d{1,5}(?:\.\d{1,3})?)[wWｗ](?=[\u3400-\u9fff，。；、,;？?！!）)]|\Z)"
        ),
        _ten_thousands,
        "w ｗ",
    ),
    NumberForm(
        "k",
        re.compile(
            r"(?<=[\u3400-\u9fff¥￥])(?<![跑走行])(?P<number>\d{1,3}(?:\.\d)?)[kK](?=[，。；、,;？?！!）)元块的]|\Z)"
        ),
        _thousands,
        "k",
    ),
    NumberForm(
        "千 and 百",
        re.compile(
            rf"(?<![\d.．])(?P<number>\d{{1,4}}(?:[.．]\d{{1,2}})?)(?P<scale>千(?![米克瓦升])|百)(?={UNIT}|一(?:{UNIT})|[多来余，。；,;？?！!\s]|\Z)"
        ),
        _hundreds_or_thousands,
        "千 百",
    ),
    NumberForm("块钱", re.compile(rf"{START}(?P<number>{NUMBER})块钱"), _kuai, "块钱"),
)


CONVERTED_MONEY = (
    NumberForm(
        "角",
        re.compile(
            rf"{START}(?P<number>\d{{1,2}}|[一二两三四五六七八九])\s?角(?![形度星尺板铁洲梅茴楼落色逐各剪]|\s[为各])"
        ),
        _jiao_in_yuan,
        "角",
    ),
)
"""Forms for solvers that were trained with converted units."""
