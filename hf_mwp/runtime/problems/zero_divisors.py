"""Search for divisions by zero that are written in a text."""

import re

from hf_mwp.runtime.expressions.numbers import to_half_width


# 0, 0.00 and 0 %, not the 0 of 0.5, 05 or 0/3, and the words.
_ZERO = r"(?:\(\s*)?(?:0+(?:\.0+)?(?![\d/]|\.\d)|零(?![点下\d又])|zero\b(?!\s+point))(?:\s*\))?"
_DIVISION = r"(?:(?<![\d.])\d[\d.]*%?|\))\s*/|除以|\b(?:divide[sd]?|dividing)\b[^.?!;,]{0,40}\bby"
# 0除5 and 5被0除 are 5÷0, too.
_REVERSED = r"(?<![\d./])0+(?:\.0+)?\s*除\s*\d|被\s*[0零]\s*除"
_ZERO_DIVISION = re.compile(rf"(?:{_DIVISION})\s*{_ZERO}|{_REVERSED}", flags=re.IGNORECASE | re.ASCII)


def zero_division(text: str) -> str | None:
    """Return the first division by zero in a text, such as `1/0`, `5÷0`, `除以零` or `divided by 0`, or `None`."""
    match = _ZERO_DIVISION.search(to_half_width(text))
    return match and match.group()
