"""Context of clock times in English texts: what is asked for, and the start of the interval that a time ends."""

import re
from fractions import Fraction

from .english_numbers import number_of
from .number_form import CONTEXT, FormMatch, asks_for, number_match, text_around, text_before


HOURS = r"\d{1,2}(?![\d:.]\d)|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
TO_THE_END = (
    r"[^\d.?!]{0,40}?(?:\b(?:to|till|til|until|end|ends|ended|finish\w*|close[sd]?|shuts?|over|arrive[sd]?|gets|got|home"
    r"|reache[sd]|lands|landed|wakes|woke|awoke|lets? out|went off|clock(?:s|ed)?[\s-]out)\b|[-–])[a-z\s]{0,30}"
)  # between the times of an interval: "to", "and arrived in London at"
_BACK = r"[^\d.?!]{0,40}?\b(?:c[ao]mes? back|came back|return(?:s|ed)?)\b[a-z\s]{0,30}"
PARTS = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25, "twenty five": 25}
TIGHT_GAP = r"(?:\s(?:to|till?|until)\s|\s?[-–]\s?)"
FEW_MINUTES = "(?:five|ten|twenty(?:[- ]five)?|5|10|20|25)"
# Words behind a full hour, but not the unit of a number.
BEHIND_AN_HOUR = (
    r"(?=[,;!?)]|\.(?!\d)|\s?[-–]|\s*\Z|\s(?:and|with|on|each|every|but|how|for|in|at|by|if|so|then|to|till?|until|when|while"
    r"|except|daily|today|everyday|weekdays|o['’]?clock|(?:this|that|the (?:next|same|following)) [a-z]|(?:a|per) day"
    r"|(?:one|two|three|four|five|six|seven|\d) days"
    r"|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6})\b)"
)

# At ten to eight: the hour is behind the minutes.
NO_MINUTES = rf"(?!\sto\s(?:{HOURS})\b)"
_HALF_DAY = r"(?!\s?[ap]\.?m\b)"
_START = re.compile(
    rf"(?:\b(?P<hours>\d{{1,2}}):(?P<minutes>\d\d){_HALF_DAY}"
    r"|\b(?:at|from)\s(?P<hours_before_point>\d{1,2})\.(?P<minutes_behind_point>[0-5]\d)(?!\d)"
    r"|\b(?:at|from)\s(?P<four_digits>(?:[01]\d|2[0-4])[0-5]\d)\b"
    rf"|\b(?P<part>half|quarter|{FEW_MINUTES})(?:\sminutes)?[\s-](?:past\s)?(?P<hour_behind>{HOURS})\b{_HALF_DAY}"
    rf"|\bat\s(?:a\s)?(?P<part_before>quarter|{FEW_MINUTES})(?:\sminutes)?\sto\s(?P<hour_behind_to>{HOURS})\b{_HALF_DAY}"
    rf"|\b(?P<at>at\s)?(?(at)|from\s)(?P<full_hour>{HOURS})\b(?(at){NO_MINUTES}){BEHIND_AN_HOUR}{_HALF_DAY})(?:{TO_THE_END}|{_BACK})\Z",
    re.IGNORECASE,
)
_TIGHT_START = re.compile(
    rf"(?:(?<![\d:.,$£€/-])\b(?P<full_hour>{HOURS}){TIGHT_GAP}|\bbetween\s(?P<hour_before_and>{HOURS})\sand\s)\Z",
    re.IGNORECASE,
)
_CLOCK_WORDS = re.compile(
    r"\b(?:works?|worked|working|shifts?|opens?|opened|opening|closed?|job|school|class(?:es)?|bed|asleep|sleeps?|slept|woke"
    r"|clock(?:s|ed)?|office|babysits?|babysat|store|shop)\b",
    re.IGNORECASE,
)
_NO_TIME_WORDS = re.compile(
    r"\b(?:won|lost|beat|scores?d?|ratio|ages?|aged|grades?|years?|points?|games?|goals?|fell|falls?|drop\w*|decreas\w*"
    r"|reduc\w*|increas\w*|chang\w*|rais\w*|rose|grew|shrank|went from|pages?|chapters?|rows?|floors?|degrees?"
    r"|multipl\w*|temperatures?|prices?|costs?|weigh\w*|stocks?|cut|numbers?)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[?!]|\.(?!\d)")
DURATION_SIGNS = "hour hr min long /"
"""One of these is in each text for which `asks_for_a_duration` is true."""
_DURATION_ASKED_FOR = re.compile(
    r"\bhow many (?:\w+ ){0,2}(?:hours?|hrs?|min(?:ute)?s?)\b|\bhow long\b|\b(?:total|number of) (?:hours|minutes)\b"
    r"|\b(?:an|per|each|every) (?:hour|hr)\b|/\s?h(?:ou)?r?\b|\bhourly\b",
    re.IGNORECASE,
)
_MORNING = re.compile(r"(?:\b|\d)a\.?m\b|\b12:|\bin the morning\b|\bnoon\b", re.IGNORECASE)
_AFTERNOON_WORDS = re.compile(r"\s(?:in the|this|that|the same) (?:afternoon|evening)\b|\sat night\b", re.IGNORECASE)
_DAY = 24 * 60
_HALF_A_DAY = 12 * 60


def asks_minutes(text: str) -> bool:
    """Return whether a text asks for minutes."""
    return asks_for("how many (?:more )?min(?:ute)?s|in minutes", text)


def asks_for_a_duration(match: re.Match[str], text: str) -> bool:
    """Return whether a text asks for hours or minutes, or has a number for each hour: $20 an hour."""
    if asks_for(r"\b(?:what time|when)\b", text):
        return False
    return _DURATION_ASKED_FOR.search(f"{text_around(match, text)}\n{text[-CONTEXT:]}") is not None


def has_clock_words(match: re.Match[str], text: str) -> bool:
    """Return whether the sentence of a match has words such as "works" and "opens", and none of scores or ages."""
    sentence = _SENTENCE_END.split(text_before(match, text))[-1]
    sentence += match[0] + _SENTENCE_END.split(text[match.end() : match.end() + CONTEXT // 4])[0]
    return _CLOCK_WORDS.search(sentence) is not None and _NO_TIME_WORDS.search(sentence) is None


def time_match(match: re.Match[str], minutes: int, text: str, group: int | str = 0) -> FormMatch:
    """Return a time in minutes if minutes are asked for, otherwise in hours."""
    if asks_minutes(text):
        return number_match(match, minutes, group=group)
    return number_match(match, Fraction(minutes, 60), group=group)


def part_of_an_hour(part: str) -> int:
    """Return the minutes of `half`, `a quarter`, `ten` or `10`."""
    name = " ".join(part.lower().split()).removeprefix("a ")
    return PARTS[name] if name in PARTS else int(name)


def start_of_interval(match: re.Match[str], text: str) -> int | None:
    """Return the time in minutes at which the interval begins that a match ends: 9:30 in "9:30 to 5"."""
    before = text_before(match, text)
    start = _START.search(before)
    if start is None:
        return None
    if start["hours"]:
        return _minutes(start["hours"], start["minutes"])
    if start["hours_before_point"]:
        return _minutes(start["hours_before_point"], start["minutes_behind_point"])
    if start["four_digits"]:
        return _minutes(start["four_digits"][:2], start["four_digits"][2:])
    if start["part"]:
        return _minutes(start["hour_behind"], str(part_of_an_hour(start["part"])))
    if start["part_before"]:
        return _minutes(start["hour_behind_to"], str(-part_of_an_hour(start["part_before"])))
    return _minutes(start["full_hour"])


def start_of_working_hours(match: re.Match[str], text: str) -> int | None:
    """Return the full hour, in minutes, right before a match in a sentence with clock words: 9 in "works 9 to 5"."""
    start = _TIGHT_START.search(text_before(match, text))
    if start is None or not has_clock_words(match, text):
        return None
    return _minutes(start["full_hour"] or start["hour_before_and"])


def _minutes(hours: str, minutes: str = "0") -> int | None:
    value = 60 * int(number_of(hours)) + int(minutes)
    return value if value <= _DAY else None


def end_of_interval(start: int, end: int) -> int:
    """Return the end of an interval in minutes: on the next day, or after noon, if it is not later than its start."""
    if end > start:
        return end
    if start > _HALF_A_DAY + 59 or end + _HALF_A_DAY <= start:
        return end + _DAY
    return end + _HALF_A_DAY


def is_afternoon(match: re.Match[str], text: str) -> bool:
    """Return whether 12 hours are added: to a time in the afternoon, if the text also has times before noon. From 3:45
    to 5:15 p.m. needs none."""
    is_named = "p" in (match.groupdict().get("half_day") or "").lower() or _AFTERNOON_WORDS.match(text, match.end())
    return bool(is_named) and has_morning(text_around(match, text))


def has_morning(text: str) -> bool:
    """Return whether a text has a time before noon."""
    return _MORNING.search(text) is not None
