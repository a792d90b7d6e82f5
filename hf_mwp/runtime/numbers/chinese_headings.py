"""Numbers before and after problems of Chinese test papers: 5、, 【例3】, (本题5分), A.12 B.15."""

import re

from .chinese_numbers import UNIT
from .number_form import NumberForm, no_number


_MARKS = r"[（(](?:[本每大小题共满分计]{0,6}\s?\d{1,3}\s?分[，,]?){1,2}[)）]"
_BOOK = r"(?:《[^》]{1,12}》\s?)?(?:[Pp]\s?\d{1,3}\s?)?(?:作业|练习册?|习题|课本|书上|试卷|课后|思考|应用){0,2}"
_SECTION = "[一二三四五六七八九十]{1,2}、[\u3400-\u9fff]{2,8}[。：:.．]?"
_LIST_NUMBER = (
    r"(?:\d{1,2}\s?[.．]\s{0,3}(?=[\u3400-\u9fff（(【])|\d{1,2}[)）]\s{0,3}(?=[\u3400-\u9fff])"
    r"|\d{1,2}、\s{0,3}(?=[\u3400-\u9fff])(?![一二两三四五六七八九十百]{1,3}[、和与])"
    rf"|\d{{1,2}}[，:：]\s{{0,3}}(?=[\u3400-\u9fff])|[0-9]\ufe0f?\u20e3\s{{0,3}}(?=[\u3400-\u9fff])(?!{UNIT})"
    rf"|{_BOOK}第\s?\d{{1,3}}\s?题[.．、：:，,]?"
    r"|[(（]\d{1,3}[)）]\s{0,3}(?=\D)|[【\[](?:例题?|练习|第)?\s?\d{1,3}\s?题?[】\]]|例题?\s?\d{1,2}(?![\d元])[.．、：:]?)"
)

CHINESE_HEADINGS = (
    NumberForm(
        "headings of problems",
        re.compile(
            rf"\A\s{{0,8}}(?:{_SECTION}\s{{0,3}})?(?:{_MARKS}\s{{0,3}})?(?:{_LIST_NUMBER}\s{{0,3}}{_MARKS}|{_LIST_NUMBER}|{_MARKS})"
        ),
        no_number,
    ),
    NumberForm(
        "marks behind a problem", re.compile(rf"(?<=[？?。．.）)])\s{{0,3}}{_MARKS}\s{{0,3}}\Z"), no_number, "分"
    ),
    # One of the choices is the answer.
    NumberForm(
        "choices",
        re.compile(
            r"(?<=[？?。．.)）])\s{0,5}A\s?[.．、:：)）][^\dB]{0,9}\d[^B？?]{0,40}B\s?[.．、:：)）](?:(?!多少|几)[^？?]){1,120}\Z"
        ),
        no_number,
        "a",
    ),
)
"""Forms of numbers that are no numbers of a problem. They come before all other forms."""
