"""Rules that reword English problems as reverse-operation problems."""

import re
import tomllib
from fractions import Fraction
from pathlib import Path

from hf_mwp.runtime.numbers.digit_numbers import literal_of
from hf_mwp.runtime.numbers.number_mention import NumberMention


_VERBS = tomllib.loads(Path(__file__).with_name("english_verbs.toml").read_text(encoding="utf-8"))


def _past(base: str) -> str:
    if base in _VERBS["irregular"]:
        return _VERBS["irregular"][base]
    if base in _VERBS["doubled"]:
        return f"{base}{base[-1]}ed"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}d" if base[-1] == "e" else f"{base}ed"


def _third(base: str) -> str:
    if base == "have":
        return "has"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "ch", "sh", "o")) else f"{base}s"


BASES = frozenset(_VERBS["irregular"]).union(_VERBS["regular"].split()) - {"do"}

AUXILIARIES = {_past(base): ("did", base) for base in BASES}
"""Mapping from verb forms to the auxiliary and base form in a question: `"bought"` -> `("did", "buy")`."""
AUXILIARIES |= {base: ("do", base) for base in BASES if _past(base) != base}
AUXILIARIES |= {_third(base): ("does", base) for base in BASES}

INFLECTED = {(auxiliary, base): form for form, (auxiliary, base) in AUXILIARIES.items()}
"""Inverse of `AUXILIARIES`: `("did", "buy")` -> `"bought"`."""

MODALS = frozenset({"will", "would", "can", "could", "should", "must"})
BE = frozenset({"is", "are", "was", "were"})

_ASKS = re.compile(r"\bhow (?:many|much)\b", flags=re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_QUESTION = re.compile(r"(?P<lead>.*?)\bhow (?P<kind>many|much)\b\s*(?P<rest>.*?)\s*\?", flags=re.IGNORECASE)
_CONDITION = re.compile(r"if\s+(?P<fact>.*),\s*", flags=re.IGNORECASE)
_AUXILIARY = "|".join(sorted(MODALS | BE | {"did", "does", "do"}))
_ASKED = re.compile(
    rf"(?P<thing>(?:(?!(?:{_AUXILIARY})\b)[\w'-]+\s+){{0,6}})(?P<auxiliary>{_AUXILIARY})\s+(?P<rest>.*)"
)

# Text before a clause; fillers before a number; the counted things after a number, and the rest of the clause.
_CLAUSE_START = re.compile(r".*(?:[,;:]|\b(?:and|but|then|so|because|if|when|while|after|before|that|now)\b)\s*", re.I)
_FILLER = re.compile(r"\s*\b(?:another|about|only|just|exactly|over|a total of|approximately)$", flags=re.IGNORECASE)
_THING = re.compile(
    r"(?P<thing>(?:\s+(?!(?:in|on|at|from|for|to|with|and|but|that|which|who|than|each|every|per|a|an|the|his|her|"
    r"their|its|my|while|when|after|before|if|by|into|during|so|then|as|because|this|last|yesterday|today|tomorrow|"
    r"left|away|all|altogether|total|[a-z]+ing|[a-z]+ly)\b)[A-Za-z'-]+){0,5})(?P<rest>[^,;.?!]*?)\s*(?:[,;.?!]|\b(?:and|but)\b|$)"
)
_NOT_COUNTED = frozenset({"times", "percent", "th", "st", "nd", "rd", "am", "pm", "a.m", "p.m", "o'clock", "years"})
_NO_NAMES = frozenset("he she they it we you the a an each every his her their its my our there".split())
_LEADS = frozenset({"for", "in", "on", "at", "by", "during", "last", "next"})
_PRONOUNS = frozenset({"he", "she", "they", "it", "we", "you"})
_MAX_SUBJECT = 5


def answer_in_english(value: Fraction, answer: str, text: str) -> str | None:
    """Return the answer as a literal for the text, or `None` for a percentage."""
    return None if "%" in answer or "percent" in answer else literal_of(value)


def reword_english(text: str, mention: NumberMention, answer: str) -> str | None:
    """Return a text that states the answer and asks for a number, or `None` if no rule applies. The last sentence, the
    only question, becomes a statement; the number becomes "some". "Al has 4 pens and Bo has 5 pens. How many pens do
    they have?" becomes "Al has 4 pens and Bo has some pens. They have 9 pens. How many pens does Bo have?"."""
    *facts, last = SENTENCE_END.split(text.strip())
    question = _QUESTION.fullmatch(last)
    if question is None or len(_ASKS.findall(text)) != 1 or text.count("?") != 1:
        return None
    lead = question["lead"]
    if condition := _CONDITION.fullmatch(lead):
        facts, lead = [*facts, f"{capitalized(condition['fact'])}."], ""
    statement = _state(question["rest"], question["kind"].lower() == "much", lead, answer, text)
    place = _find(mention, text, facts)
    if statement is None or place is None or mention.is_percent:
        return None
    index, start = place
    asked = ask_in_english(facts[index], start, start + len(mention.text))
    if asked is None:
        return None
    facts[index], new_question = asked
    return " ".join([*facts, statement, new_question])


def _find(mention: NumberMention, text: str, facts: list[str]) -> tuple[int, int] | None:
    """Return the index of the sentence with a number and the offset there, or `None` if `facts` lacks the number."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(mention.text)}(?!\w)", flags=re.IGNORECASE)
    places = [(index, match.start()) for index, sentence in enumerate(facts) for match in pattern.finditer(sentence)]
    before = len(pattern.findall(text[: mention.start]))
    return places[before] if before < len(places) else None


def _state(rest: str, is_amount: bool, lead: str, answer: str, text: str) -> str | None:
    """Turn a question into a statement: "pens did she buy" with the answer 5 becomes "She bought 5 pens."."""
    asked = _ASKED.fullmatch(rest)
    if asked is None or re.search(r"\d", lead):
        return None
    thing, auxiliary, rest = asked["thing"].strip(), asked["auxiliary"].lower(), asked["rest"].split()
    quantity = f"{answer} {thing}".strip()
    if is_amount:
        if thing.lower() not in ("", "money") or not re.search(r"\$|\bdollars?\b", text):
            return None
        quantity = f"${answer}" if "$" in text else f"{answer} dollars"
    # "are there in all", "are in the box", or an auxiliary, a subject and a verb: "did she buy".
    if rest[:1] == ["there"]:
        verb = 1 if auxiliary in BE else 2
        words = ["there", auxiliary, *rest[1:verb], quantity, *rest[verb:]]
    elif auxiliary in BE:
        words = [quantity, auxiliary, *rest]
    else:
        verb = next((place for place, word in enumerate(rest) if place and word.lower() in BASES), None)
        if verb is None:
            return None
        # "did ... buy" becomes "bought"; in "want to buy" the quantity comes after the last verb.
        if auxiliary not in MODALS:
            auxiliary, rest[verb] = "", INFLECTED.get((auxiliary, rest[verb]), rest[verb])
        while rest[verb + 1 : verb + 2] == ["to"] and rest[verb + 2 : verb + 3] and rest[verb + 2].lower() in BASES:
            verb += 2
        modal = [auxiliary] if auxiliary else []
        verbs = BASES | AUXILIARIES.keys()
        subject = rest[: next(place for place, word in enumerate(rest) if place and word.lower() in verbs)]
        words = [*subject, *modal, *rest[len(subject) : verb + 1], quantity, *rest[verb + 1 :]]
    return f"{capitalized(lead + ' '.join(words))}."


def ask_in_english(sentence: str, start: int, stop: int) -> tuple[str, str] | None:
    """Return the sentence with "some" for the number at `[start, stop)` and a question for it, or `None` (no rule)."""
    # Split the sentence into the clause before the number, a filler ("another"), and the counted things.
    before, after = sentence[:start].rstrip(), sentence[stop:]
    thing = _THING.match(after)
    is_money = before.endswith("$")
    before = before.removesuffix("$").rstrip()
    filler = _FILLER.search(before)
    bare = before[: filler.start()] if filler else before
    clause = _CLAUSE_START.sub("", bare, count=1).split()
    counted = thing["thing"].split()
    if after[:1] not in ("", " ", ".", ",", "?") or (is_money and counted):
        return None
    if counted and (counted[0].lower() in _NOT_COUNTED or counted[-1].lower() == "of"):
        return None
    verb = _clause_verb(clause)
    if verb is None:
        return None
    words = ["How much"] if is_money else ["How many", *counted]
    question = f"{' '.join([*words, *verb])}{thing['rest'].rstrip()}?"
    more = " more" if filler and filler.group().strip().lower() == "another" else ""
    return f"{bare} some{more}{' money' if is_money else ''}{after}", question


def _clause_verb(clause: list[str]) -> list[str] | None:
    """Return the subject and final verb of a clause in the order of a question: did, she, buy."""
    if len(clause) < 2:
        return None
    *subject, verb = clause
    verb = verb.lower()
    if verb in BE and [word.lower() for word in subject] == ["there"]:
        return [verb, "there"]
    if verb in BASES and subject[-1].lower() in MODALS:
        *subject, auxiliary = subject
        base = verb
    elif verb in AUXILIARIES:
        auxiliary, base = AUXILIARIES[verb]
    else:
        return None
    words = [word.lower() for word in subject]
    if not 0 < len(words) <= _MAX_SUBJECT or any(word in AUXILIARIES or word in MODALS | BE for word in words):
        return None
    if not all(word.replace("'", "").replace("-", "").replace(".", "").isalpha() for word in words) or "to" in words:
        return None
    begin = max((place for place, word in enumerate(words) if word in _PRONOUNS), default=0)
    if words[0] in _NO_NAMES | _LEADS:
        subject[0] = words[0]
    return [auxiliary.lower(), *subject[begin:], base, *subject[:begin]]


def capitalized(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]
