"""Groups in English texts that also have a person who is named beside them: Bob and his four friends are five."""

import re

from .english_numbers import NUMBER, number_of
from .number_form import FormMatch, NumberForm, number_match, text_around


_PEOPLE = (
    "friends brothers sisters siblings cousins classmates roommates housemates flatmates teammates buddies pals mates "
    "coworkers colleagues neighbors neighbours"
)
_GROUP = (
    rf"(?P<number>(?i:{NUMBER})) (?:of (?:my|his|her) )?(?:other |best |close |good |younger |older |little )?"
    rf"(?:{'|'.join(_PEOPLE.split())})\b"
)
_PERSON = (
    r"(?:\b(?:[A-Z][a-z]{1,20}|(?i:I|me|he|she|him|her|myself|himself|herself))"
    r"|(?:\A|(?<=[.!?,;:]\s))[a-z]{2,20})"
)
# Only where something is shared, the group counts as a whole.
_SHARING = re.compile(
    r"\b(?:shar(?:e|es|ed|ing)|split(?:s|ting)?|divid(?:e|es|ed|ing)|equal(?:ly)?|evenly|fairly|each|apiece|"
    r"every(?:one|body)|per person|chip(?:s|ped)? in)\b",
    re.IGNORECASE,
)


def _with_the_person(match: re.Match[str], text: str) -> FormMatch | None:
    """Return the number of all people, if they share something."""
    if _SHARING.search(text_around(match, text)) is None:
        return None
    number = number_of(match["number"])
    if number.denominator != 1:
        return None
    return number_match(match, number + 1, note=f"{match[0]} was read as {number + 1} people", group="number")


ENGLISH_PEOPLE = (
    # His two friends Ann and Kim may each have a number of their own.
    NumberForm(
        "a person and a group",
        re.compile(rf"{_PERSON} and (?i:my|his|her) {_GROUP}(?!,? [A-Z][a-z]+(?:,| and))"),
        _with_the_person,
        _PEOPLE,
    ),
    NumberForm("a group and I", re.compile(rf"\b{_GROUP} and (?:I|i|me|myself)\b"), _with_the_person, _PEOPLE),
)
