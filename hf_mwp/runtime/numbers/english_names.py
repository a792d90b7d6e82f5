"""Digits and words of English texts that are no numbers of a problem: names, dates, ordinals, ages of persons."""

import re

from .english_numbers import after_words
from .number_form import CONTEXT, FormMatch, NumberForm, asks_for, no_number, text_around, text_before


_AGE_WORDS = re.compile(r"\b(?:ages?|old|older|young|younger|years?|born)\b", re.IGNORECASE)
_ASKS_FOR_YEARS = re.compile(
    r"how (?:many (?:more |full )?years|old|long)\b|\b(?:what|which) year"
    r"|\b(?:ages?|older|younger|born|years (?:ago|later|before|after|since)|(?:each|every|per|(?<!half )a) year)\b",
    re.IGNORECASE,
)
_AGE_ADJECTIVE = re.compile(r"\b[A-Za-z\d]{1,9}[- ]years?[- ]olds?\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[?!]|\.(?!\d)")
_COUNTED_ORDINAL = re.compile(r"\b(?:every|each|by the|after the|before the|until the)\s\Z", re.IGNORECASE)
_ASKS_FOR_TIME = re.compile(
    r"how many (?:more |total )?(?:days|weeks|months|years|nights)"
    r"|\b(?:what|which) (?:day|date|year|month)|how (?:long|old)"
    r"|\b(?:when|until|through|from|between|today|days? (?:before|after))\b",
    re.IGNORECASE,
)


def _is_in_question(match: re.Match[str], text: str) -> bool:
    end = _SENTENCE_END.search(text, match.end(), match.end() + CONTEXT)
    return end is not None and end[0] == "?"


def _ordinal(match: re.Match[str], text: str) -> FormMatch | None:
    """On the 2nd day he sold 15 cups. It may be a number of the problem in a question and after "by the"."""
    if match["grade"] or match["rank"]:
        return no_number(match, text)
    return _numbered(match, text)


def _numbered(match: re.Match[str], text: str) -> FormMatch | None:
    """Day 1, Week 3."""
    if _is_in_question(match, text) or _COUNTED_ORDINAL.search(text_before(match, text)):
        return None
    return no_number(match, text)


def _date(match: re.Match[str], text: str) -> FormMatch | None:
    """On July 4th: no number unless the text is about periods of time."""
    if _ASKS_FOR_TIME.search(text_around(match, text)) or _ASKS_FOR_TIME.search(text[-CONTEXT:]):
        return None
    return no_number(match, text)


def _year(match: re.Match[str], text: str) -> FormMatch | None:
    """In 2019: no number unless the text is about years."""
    if _ASKS_FOR_YEARS.search(text[-CONTEXT:]):
        return None
    return no_number(match, text)


def _single_place(match: re.Match[str], text: str) -> FormMatch | None:
    """Their flat on the 3rd floor, our seats in row 22, in a text without other floors or rows."""
    if text_around(match, text).lower().count(match["place"].lower()) > 1:
        return None
    return no_number(match, text)


def _bedrooms(match: re.Match[str], text: str) -> FormMatch | None:
    """A 2 bedroom apartment: no number unless the question is about rooms."""
    if asks_for("room", text[match.end() :]):
        return None
    return no_number(match, text)


def _age(match: re.Match[str], text: str) -> FormMatch | None:
    """A 5-year-old boy: no number unless the text is about ages."""
    rest = _AGE_ADJECTIVE.sub("", text[match.end() : match.end() + CONTEXT])
    if _AGE_WORDS.search(rest):
        return None
    return FormMatch(*match.span("age"), None)


def _time_as_a_name(match: re.Match[str], text: str) -> FormMatch | None:
    """The 10:30 train has 200 seats: no number unless the question is about times."""
    if asks_for(_ABOUT_TIMES, text) or _TRAVELS.match(text, match.end()):
        return None
    return no_number(match, text)


def _size(match: re.Match[str], text: str) -> FormMatch | None:
    """Size 8 shoes: no number unless the question is about sizes."""
    if asks_for(r"\bsizes?\b[^.!?]*\?", text[match.end() :]):
        return None
    return no_number(match, text)


def _score(match: re.Match[str], text: str) -> FormMatch | None:
    """They won 3-1: no number unless the question is about goals or points."""
    if asks_for(_ABOUT_SCORES, text):
        return None
    return no_number(match, text)


def _ages(match: re.Match[str], text: str) -> FormMatch | None:
    """For ages 5-10: no number unless the question is about ages."""
    if _AGE_WORDS.search(text[match.end() : match.end() + CONTEXT]):
        return None
    return no_number(match, text)


_ABOUT_TIMES = (
    r"how (?:long|late)|how many (?:more |total )?(?:minutes|hours|mins|hrs)|\b(?:what|which) time\b|\bwhen\b"
    r"|\b(?:arrives?|leaves?|departs?|starts?|ends?|later|earlier)\b"
)
_TRAVELS = re.compile(r" (?:train|bus|flight|ferry|boat) (?:arrives?|leaves?|left|departs?|gets|takes|was|is \d)")
_ABOUT_SCORES = r"\b(?:how many|what)\b[^.!?]*\b(?:goals?|points?|runs?|score|scored|difference)\b"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_OF_YEAR = r"(?:,? (?:19|20)\d\d\b)?"
_PERSON = (
    "boy|girl|man|woman|child|student|kid|cousin|sister|brother|son|daughter|nephew|niece|grandson|granddaughter"
    "|friend|neighbor|farmer|teacher|driver|baker|nurse|doctor|lady|grandmother|grandfather|uncle|aunt|twins?|has|had|gets|got|eats|ate|wants"
)


def _signs(letters: str) -> str:
    """Return the letters with each digit behind them."""
    return " ".join(f"{letters}{digit}" for digit in range(10))


ENGLISH_NAMES = (
    NumberForm(
        "ordinals",
        re.compile(
            r"(?<![\d.,/])\d{1,3}(?:st|nd|rd|th)"
            r"(?=(?: and \d{1,2}(?:st|nd|rd|th))?"
            r" (?:(?P<grade>grade)|day|week|month|time|round|game|place|prize)r?s?\b"
            r"|(?P<rank> in (?:the|a|his|her) (?:race|contest|competition|class|line)\b))"
        ),
        _ordinal,
        "st nd rd th",
        at_digits=True,
    ),
    NumberForm(
        "numbered days",
        re.compile(r"\b(?:Day|Week|Month|Level|Chapter|Lesson|Table|Figure|Step) \d{1,2}(?=[:,]| (?!\d))(?![\d.])"),
        _numbered,
    ),
    NumberForm(
        "dates",
        re.compile(
            # "Tom gave June 5 apples" has a number.
            rf"\b{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)\b{_OF_YEAR}"
            rf"|\b(?:[Oo]n|[Bb]y|[Ss]ince|[Bb]efore|[Aa]fter) (?:{_MONTH} \d{{1,2}}|\d{{1,2}} {_MONTH})"
            rf"(?![\w.:]\w|\w){_OF_YEAR}"
            rf"|\b{_MONTH} \d{{1,2}},? (?:19|20)\d\d\b"
            rf"|\b\d{{1,2}}(?:st|nd|rd|th) (?:of )?{_MONTH}(?![a-z]){_OF_YEAR}"
            r"|(?<=\b[Oo]n )(?:[1-9]|1[0-2])/(?:[12]\d|3[01]|[1-9])(?![\d/.])(?! of\b)"
        ),
        _date,
        "jan feb mar apr may jun jul aug sep oct nov dec /",
    ),
    NumberForm(
        "years",
        re.compile(r"\b(?:[Ii]n|[Ss]ince) (?:19|20)\d\d\b(?:,? (?:and )?(?:19|20)\d\d\b){0,4}(?! \d)"),
        _year,
        "in since",
    ),
    NumberForm("centuries", re.compile(r"\b\d{1,2}(?:st|nd|rd|th) century\b"), no_number, "century"),
    NumberForm("decades", re.compile(r"\b(?:1[89]|20)\d0['’]?s\b|['’]\d0s\b"), no_number, "0"),
    NumberForm(
        "ages of persons",
        re.compile(rf"(?<![\d.,/])(?P<age>\d{{1,3}})[- ](?:years?|yrs?)[- ]old (?=(?:{_PERSON})\b)"),
        _age,
        "old",
        at_digits=True,
    ),
    NumberForm(
        "range of ages",
        re.compile(r"\bage[sd] \d{1,2}(?:\s?[-–]\s?| to | and )(?:\d{1,2}\b|up\b|over\b|older\b)"),
        _ages,
        "ages aged",
    ),
    NumberForm(
        "names",
        re.compile(
            r"\b(?i:flat|apartment|apt\.?|unit) \d{1,4}[A-Za-z]?\b"
            r"|\b(?:in|from) (?:class|year) \d{1,2}(?![\d.,]\d)\b"
            r"|(?:\bYear|(?:\A|(?<=[.?!:] )|(?<=\band ))year) (?:[1-9]|1[0-3])"
            r"(?= (?:has|have|had|pupils?|students?|children|kids|class|classes|teachers?|bake|fair|trip)\b)"
            r"|\b(?i:class|form) \d{1,2}[A-Fa-f]\b(?:(?:, | and | or )\d{1,2}[A-Fa-f]\b){0,3}"
            r"|\b(?:Room|Route|Highway|Interstate|Flight|Bus|Class|Platform|Exit|Building|Train|Team|Group|Box)"
            r" \d{1,4}\b"
            # "He can clean his room 4 minutes faster" has a number.
            r"|\b(?:room|route|highway|flight) \d{1,4}"
            r"(?=[.,;?!]|\s(?:has|have|had|is|are|was|were|and|to|from|on|in)\b)"
            r"|\bI-\d{1,3}\b|(?<!\w)#\s?\d{1,4}\b(?!\s?(?:pounds?|lbs?)\b)"
            r"|\b(?:[Nn]umber|[Nn]o\.|[Ll]ine) \d{1,3}(?= (?:bus|tram|train|line)\b)"
            r"|\b(?:[Mm][Pp][34]|H2O|CO2|B12|B6|A4|5G)\b"
        ),
        no_number,
        "room route highway interstate flight bus class platform exit building train team group box"
        " i- # tram line mp3 mp4 h2o co2 b12 b6 a4 5g flat apartment apt unit year form",
    ),
    NumberForm(
        "scores",
        re.compile(r"\b(?:won|lost|drew|tied) \d{1,2}\s?[-–]\s?\d{1,2}\b", re.IGNORECASE),
        _score,
        "won lost drew tied",
    ),
    NumberForm(
        "times as names",
        re.compile(
            r"(?<=\b[Tt]he )\d{1,2}:\d\d(?: ?[ap]\.?m\b\.?)?"
            r"(?= (?:train|bus|flight|ferry|boat|coach|tram|show|showing|class|movie|film|service|one)\b)"
        ),
        _time_as_a_name,
        ":",
    ),
    NumberForm(
        "sizes",
        re.compile(
            r"(?<!\bclass )(?<!\bgroup )(?<!\bsample )(?<!\bfamily )\b[Ss]ize \d{1,2}(?:\.5)?"
            r"(?= (?:shoes?|boots?|sneakers|trainers|slippers|socks|jeans|pants|trousers|dress(?:es)?|shirts?|feet)\b)"
        ),
        _size,
        "size",
    ),
    NumberForm(
        "floors",
        re.compile(r"\b\d{1,2}(?:st|nd|rd|th) (?P<place>floor)\b", re.IGNORECASE),
        _single_place,
        "floor",
        at_digits=True,
    ),
    NumberForm("rows", re.compile(r"\bin (?P<place>row) \d{1,3}\b", re.IGNORECASE), _single_place, "row"),
    NumberForm(
        "bedrooms",
        re.compile(r"\b\d{1,2}[ -]bed(?:room)?(?= (?:apartment|flat|house|home|condo|place)\b)", re.IGNORECASE),
        _bedrooms,
        "bed",
        at_digits=True,
    ),
    NumberForm(
        "numbers of buses and houses",
        re.compile(
            r"(?<=\bthe )\d{1,3}(?= (?:bus|tram)\b)"
            r"|\b\d{1,5}(?= [A-Z][a-z]{2,12} (?:Street|St|Avenue|Ave|Road|Rd|Lane|Drive)\b)"
        ),
        no_number,
        at_digits=True,
    ),
    NumberForm(
        "names of products",
        re.compile(
            r"\b(?:iPhone|iPad|Xbox|PlayStation|Nintendo|Windows|Formula|Galaxy|Pixel|Boeing|Apollo|World War)"
            r" ?S?\d{1,3}\b"
            r"|\b(?:PS|COVID-|Covid-|GPT-|V)\d{1,2}\b|\bSeven[- ]?(?:Eleven|Up)\b"
            r"|\b(?:two|three|four)-way\b|\bfour-wheel\b"
        ),
        no_number,
        "iphone ipad xbox playstation nintendo windows formula galaxy pixel boeing apollo world covid gpt"
        f" {_signs('ps')} {_signs('v')} eleven up -way -wheel",
    ),
    NumberForm(
        "names with a number at the beginning",
        re.compile(r"\b(?:7[- ]?(?:Eleven|Up)\b|[234]D(?= [a-z])|4K(?= TV)|[234]-way\b|24-7\b|9-to-5\b)"),
        no_number,
        at_digits=True,
    ),
    NumberForm(
        "grades",
        re.compile(
            rf"(?:\bGrade|{after_words('in of from did')}grade) (?:1[0-2]|[1-9])\b(?![.,]\d|%|\s?[-/])"
            r"|\bgrade (?:1[0-2]|[1-9])(?=\s(?:has|had|have|students?|kids|pupils|class|teachers?)\b)"
        ),
        no_number,
        "grade",
    ),
)
