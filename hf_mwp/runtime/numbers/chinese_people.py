"""Groups in Chinese texts that also have a person who is named beside them: 小明和5个朋友 are six."""

import re

from .chinese_numbers import NUMBER, number_of
from .number_form import FormMatch, NumberForm, number_match, text_around


_PERSON = r"(?:我|他|她|自己|小[\u4e00-\u9fff]|(?P<repeated>[\u4e00-\u9fff])(?P=repeated))"
_WHOSE = "(?:我的|他的|她的|自己的|另外的?|其他|班上的?)"
_GROUP = (
    rf"(?P<number>{NUMBER})(?:个|名|位)(?:好|小|男|女)?(?:朋友|同学|伙伴|小伙伴|同伴|伙计|同事|室友|队友|表弟|表妹)"
)
# Only where something is shared, the group counts as a whole.
_SHARING = re.compile("平均|平分|均分|等分|每人|每个人|人均|分着|AA")


def _with_the_person(match: re.Match[str], text: str) -> FormMatch | None:
    """Return the number of all people, if they share something."""
    number = number_of(match["number"])
    if number is None or number.denominator != 1 or _SHARING.search(text_around(match, text)) is None:
        return None
    return number_match(match, number + 1, note=f"{match[0]} was read as {number + 1} people", group="number")


CHINESE_PEOPLE = (
    NumberForm(
        "a person and a group",
        re.compile(rf"(?<![个名位]){_PERSON}[和跟与]{_WHOSE}?{_GROUP}"),
        _with_the_person,
        "和 跟 与",
    ),
)
