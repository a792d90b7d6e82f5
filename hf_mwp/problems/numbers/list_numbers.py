"""Numbers of list items before a problem: `1. `, `(2) `, 例5, 第3题. They are no numbers of the problem."""

import re

from .number_form import NumberForm, no_number


LIST_NUMBERS = (
    NumberForm(
        "list numbers",
        re.compile(
            r"\A\s{0,8}(?:例\s?\d{1,2}(?![\d元])[.．、：:]?|第\s?\d{1,3}\s?题[.．、：:]?|(?:Question|Problem|Exercise)\s\d{1,3}[.:)]?"
            r"|[Qq]?\d{1,3}[.．)）]\s{1,3}(?=\D)|[(（]\d{1,3}[)）]\s{0,3}(?=\D)|\d{1,2}[．.](?=[\u3400-\u9fff]))"
        ),
        no_number,
    ),
)
