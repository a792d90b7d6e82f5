"""Remarks in Chinese problems, whose numbers are not of the problem: 我算的432，对答案不对, （1公斤=2斤）."""

import re

from .chinese_numbers import NUMBER
from .number_form import FormMatch, NumberForm, is_behind_the_question, no_number
from .units import UNITS, unit_names


_QUESTION = re.compile("多少|几|多[大长高重远]|[=＝][．。.]?")
_END_OF_QUESTION = re.compile(r"(?:多少|几|多[大长高重远])[^，,。？?！!\n]{0,15}[，,。．？?！!\s（(]")
_PERSON = "我|孩子|女儿|儿子|娃|闺女|他|她|老师|同学|同桌|书上|有人"
_AFTER_THE_CLAIM = "的|出|来|得|了|成|是|着|答案"


def _remark(match: re.Match[str], text: str) -> FormMatch | None:
    """我算的是32: no number behind the question, and before no other question."""
    if not is_behind_the_question(match, text, _END_OF_QUESTION, _QUESTION):
        return None
    return no_number(match, text)


def _unit_equation(match: re.Match[str], text: str) -> FormMatch | None:
    """（1公斤=2斤）: no numbers where it is right, since quantities are converted and solvers know the units."""
    larger = UNITS["zh"][match["larger"]]
    smaller = UNITS["zh"][match["smaller"]]
    if larger.measure != smaller.measure or larger.size != int(match["factor"]) * smaller.size:
        return None
    return no_number(match, text)


CHINESE_REMARKS = (
    NumberForm(
        "equations of units",
        re.compile(
            rf"[(（]1\s?(?P<larger>{unit_names('zh')})\s?[=＝]\s?(?P<factor>\d{{1,7}})\s?(?P<smaller>{unit_names('zh')})[)）]"
        ),
        _unit_equation,
        "= ＝",
    ),
    NumberForm(
        "dozens in brackets", re.compile(r"[(（](?:一|1)打(?:[=＝是有]|等于)12[个支只]?[)）]"), no_number, "打"
    ),
    NumberForm(
        "answers in remarks",
        re.compile(
            rf"(?:(?:{_PERSON})[^，,。？?！!\n\d]{{0,4}}(?:算|写|做|说|选|填)(?:{_AFTER_THE_CLAIM}){{0,4}}|答案(?:是|为|写的是?)){NUMBER}"
        ),
        _remark,
        "算 写 做 说 选 填 答案",
    ),
    NumberForm(
        "numbers asked about in remarks",
        re.compile(rf"这个?{NUMBER}(?=[^，,。？?！!\n]{{0,6}}(?:到底|怎么|哪来|什么|为啥|乘谁))"),
        _remark,
        "这",
    ),
)
"""Forms that are no numbers of a problem. They come before all other forms."""
