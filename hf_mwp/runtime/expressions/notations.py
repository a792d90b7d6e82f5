"""Conversion of LaTeX, grouped digits and Chinese fractions in equations and answers to plain notation."""

import re


_MAX_NESTING = 8  # of LaTeX fractions
_SPECIAL = re.compile(r"[\\{'’又分‰\u00a0\u2007-\u2009\u202f\u200b-\u200d\u2060\ufeff\u00ad]|\d \d|\d,\d\d,")
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
_GROUPS = re.compile(
    r"(?<![\d.,])\d{1,3}(?:(?:\{,\}\d{3}){1,12}|(?:\\,\d{3}){1,12}|(?:['’]\d{3}){1,12}"
    r"|(?:[ \u00a0\u2007-\u2009\u202f]\d{3}){1,12}(?!/))(?![\d'’])"
    r"|(?<![\d.,])\d{1,2}(?:,\d\d){1,4},\d{3}(?![\d,])"
)
# LaTeX commands without a meaning for the value, and the signs that others stand for.
_WRAPPERS = re.compile(
    r"\\(?:left|right|displaystyle|,|;|!|:|quad|qquad)(?![A-Za-z])|\\[()\[\]]|(?<!\\)\$(?=.*(?<!\\)\$)"
    r"|\^\{?\\circ\}?"
)
_WORDS = re.compile(r"\\(?:text|mathrm|mathbf|textbf|operatorname)\s?\{([^{}]{0,200})\}")
_SIGNS = {
    r"\times": "*",
    r"\cdot": "*",
    r"\div": "/",
    r"\%": "%",
    r"\$": "$",
    r"\approx": "=",
    r"\{": "{",
    r"\}": "}",
}
_SIGN = re.compile("|".join(re.escape(sign) + ("(?![A-Za-z])" if sign[-1].isalpha() else "") for sign in _SIGNS))
_FRACTION = re.compile(
    r"(?<![\d])(?P<whole>\d{1,9})?\s?\\[cdt]?frac\s?(?:\{(?P<numerator>[^{}]{1,200})\}|(?P<n>\d))\s?"
    r"(?:\{(?P<denominator>[^{}]{1,200})\}|(?P<d>\d))"
)
_POWER = re.compile(r"\^\{(-?\d{1,9})\}")
_PERCENT_WORDS = re.compile(r"百分之\s?(\d{1,12}(?:\.\d{1,12})?)")
_FRACTION_WORDS = re.compile(r"(?:(\d{1,9})\s?又\s?)?(?<!\d)(\d{1,9})\s?分之\s?(\d{1,9})")
_MIXED_WORDS = re.compile(r"(?<![\d.])(\d{1,9})\s?又\s?\(?(\d{1,9})/(\d{1,9})\)?(?!\d)")
_PER_MILLE = re.compile(r"(?<![\d.])(\d{1,9})\s?‰")


def plain_notation(text: str) -> str:
    """
    Convert an equation or answer in half-width characters to plain notation.

    - LaTeX: `\\frac{3}{4}` and `\\frac34` become `(3/4)`, `1\\frac{1}{2}` becomes `1(1/2)`, `50\\%` becomes `50%`, and
      `\\times` becomes `*`.
    - Grouped digits: `1 000`, `3{,}600`, `12'500` become `1000`, `3600`, `12500`.
    - Chinese: `百分之50` becomes `50%`, `4分之3` and `1又1/2` become `(3/4)` and `1(1/2)`.

    Other texts are returned unchanged.
    """
    if _SPECIAL.search(text) is None:
        return text
    text = _INVISIBLE.sub("", text)
    text = _GROUPS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    if "\\" in text:
        text = _without_latex(text)
    text = _PERCENT_WORDS.sub(r"\1%", text)
    text = _FRACTION_WORDS.sub(lambda match: f"{match[1] or ''}({match[3]}/{match[2]})", text)
    text = _MIXED_WORDS.sub(r"\1(\2/\3)", text)
    return _PER_MILLE.sub(r"(\1/1000)", text)


def _without_latex(text: str) -> str:
    text = _WORDS.sub(r" \1 ", text)
    text = _WRAPPERS.sub("", text)
    text = _SIGN.sub(lambda match: _SIGNS[match[0]], text)
    for _ in range(_MAX_NESTING):
        text, replaced = _FRACTION.subn(_division, text)
        if not replaced:
            break
    return _POWER.sub(r"^\1", text)


def _division(match: re.Match[str]) -> str:
    numerator = (match["numerator"] or match["n"]).strip()
    denominator = (match["denominator"] or match["d"]).strip()
    if numerator.isdecimal() and denominator.isdecimal():
        return f"{match['whole'] or ''}({numerator}/{denominator})"
    factor = f"{match['whole']}*" if match["whole"] else ""
    return f"{factor}(({numerator})/({denominator}))"
