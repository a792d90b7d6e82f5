"""Rules that reword English problems as reverse-operation problems."""

import re
import tomllib
from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.numbers.number_mention import NumberMention


_VERBS = tomllib.loads(Path(__file__).with_name("english_verbs.toml").read_text(encoding="utf-8"))


def _past(base: str) -> str:
    if base in _VERBS["irregular"]:
        return _VERBS["irregular"][base]
    if base in _VERBS["doubled"]:
        return f"{base}{base[-1]}ed"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    if base[-1] == "e":
        return f"{base}d"
    return f"{base}ed"


def _third(base: str) -> str:
    if base == "have":
        return "has"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    if base.endswith(("s", "x", "ch", "sh", "o")):
        return f"{base}es"
    return f"{base}s"


BASES = frozenset(_VERBS["irregular"]).union(_VERBS["regular"].split()) - {"do"}

AUXILIARIES = {_past(base): ("did", base) for base in BASES}
"""Mapping from verb forms to the auxiliary and base form in a question: `"bought"` -> `("did", "buy")`."""
AUXILIARIES |= {base: ("do", base) for base in BASES if _past(base) != base}
AUXILIARIES |= {_third(base): ("does", base) for base in BASES}

INFLECTED = {(auxiliary, base): form for form, (auxiliary, base) in AUXILIARIES.items()}
"""Inverse of `AUXILIARIES`: `("did", "buy")` -> `"bought"`."""

MODALS = frozenset({"will", "would", "can", "could", "should", "must"})
BE = frozenset({"is", "are", "was", "were"})
_VERB_FORMS = MODALS | BE | AUXILIARIES.keys()

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
_MARKS_IN_NAMES = str.maketrans("", "", "'-.")


def answer_in_english(value: Fraction, answer: str, text: str) -> str | None:
    """Return the answer as a literal for the text, or `None` for a percentage."""
    if "%" in answer or "percent" in answer:
        return None
    return literal_of(value)


def reword_english(text: str, mention: NumberMention, answer: str) -> str | None:
    """Return a text that states the answer and asks for a number, or `None` if no rule applies. The last sentence, the
    only question, becomes a statement; the number becomes "some". "Al has 4 pens and Bo has 5 pens. How many pens do
    they have?" becomes "Al has 4 pens and Bo has some pens. They have 9 pens. How many pens does Bo have?"."""
    *facts, last = SENTENCE_END.split(text.strip())
    question = _QUESTION.fullmatch(last)
    if question is None or len(_ASKS.findall(text)) != 1 or text.count("?") != 1:
        return None
    lead = question["lead"]
    condition = _CONDITION.fullmatch(lead)
    if condition is not None:
        facts.append(f"{capitalized(condition['fact'])}.")
        lead = ""
    is_amount = question["kind"].lower() == "much"
    statement = _state(question["rest"], is_amount, lead, answer, text)
    position = _find(mention, text, facts)
    if statement is None or position is None or mention.is_percent:
        return None
    index, start = position
    reworded = ask_in_english(facts[index], start, start + len(mention.text))
    if reworded is None:
        return None
    facts[index], new_question = reworded
    return " ".join([*facts, statement, new_question])


def _find(mention: NumberMention, text: str, facts: list[str]) -> tuple[int, int] | None:
    """Return the index of the sentence with a number and the offset there, or `None` if `facts` lacks the number."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(mention.text)}(?!\w)", flags=re.IGNORECASE)
    positions = []
    for index, sentence in enumerate(facts):
        for match in pattern.finditer(sentence):
            positions.append((index, match.start()))
    num_before = len(pattern.findall(text[: mention.start]))
    if num_before >= len(positions):
        return None
    return positions[num_before]


def _state(rest: str, is_amount: bool, lead: str, answer: str, text: str) -> str | None:
    """Turn a question into a statement: "pens did she buy" with the answer 5 becomes "She bought 5 pens."."""
    question = _ASKED.fullmatch(rest)
    if question is None or re.search(r"\d", lead):
        return None
    thing = question["thing"].strip()
    auxiliary = question["auxiliary"].lower()
    words = question["rest"].split()
    quantity = f"{answer} {thing}".strip()
    if is_amount:
        if thing.lower() not in ("", "money") or not re.search(r"\$|\bdollars?\b", text):
            return None
        quantity = f"${answer}" if "$" in text else f"{answer} dollars"
    # "are there in all", "are in the box", or an auxiliary, a subject and a verb: "did she buy".
    if words[:1] == ["there"]:
        last_verb = 1 if auxiliary in BE else 2
        words.insert(1, auxiliary)
        words.insert(last_verb + 1, quantity)
    elif auxiliary in BE:
        words = [quantity, auxiliary, *words]
    else:
        words = _answer_clause(words, auxiliary, quantity)
    if words is None:
        return None
    return f"{capitalized(lead + ' '.join(words))}."


def _answer_clause(words: list[str], auxiliary: str, quantity: str) -> list[str] | None:
    """Return a question's subject and verbs as a statement about a quantity, or `None` if it has no known verb."""
    first_verb = _find_word(words, BASES)
    if first_verb is None:
        return None
    words = list(words)
    # In "want to buy", the quantity comes after the last verb.
    last_verb = first_verb
    while words[last_verb + 1 : last_verb + 2] == ["to"] and _find_word(words[last_verb + 1 :], BASES) == 1:
        last_verb += 2
    words.insert(last_verb + 1, quantity)
    if auxiliary in MODALS:
        words.insert(_find_word(words, AUXILIARIES), auxiliary)
    else:
        # "did ... buy" becomes "bought".
        words[first_verb] = INFLECTED.get((auxiliary, words[first_verb]), words[first_verb])
    return words


def _find_word(words: list[str], choices: Collection[str]) -> int | None:
    """Return the index of the first word that is one of `choices`, or `None`. The subject at index 0 is skipped."""
    for index, word in enumerate(words):
        if index and word.lower() in choices:
            return index
    return None


def ask_in_english(sentence: str, start: int, stop: int) -> tuple[str, str] | None:
    """Return the sentence with "some" for the number at `[start, stop)` and a question for it, or `None` (no rule)."""
    # Split the sentence into the clause before the number, a filler ("another"), and the counted things.
    before = sentence[:start].rstrip()
    after = sentence[stop:]
    is_money = before.endswith("$")
    before = before.removesuffix("$").rstrip()
    unknown = "some"
    filler = _FILLER.search(before)
    if filler is not None:
        before = before[: filler.start()]
        if filler[0].strip().lower() == "another":
            unknown = "some more"
    clause = _CLAUSE_START.sub("", before, count=1).split()
    match = _THING.match(after)
    thing = match["thing"].split()
    if after[:1] not in ("", " ", ".", ",", "?") or (is_money and thing):
        return None
    if thing and (thing[0].lower() in _NOT_COUNTED or thing[-1].lower() == "of"):
        return None
    verb = _clause_verb(clause)
    if verb is None:
        return None
    words = ["How many", *thing, *verb]
    if is_money:
        words[0] = "How much"
        unknown += " money"
    question = f"{' '.join(words)}{match['rest'].rstrip()}?"
    return f"{before} {unknown}{after}", question


def _clause_verb(clause: list[str]) -> list[str] | None:
    """Return the subject and final verb of a clause in the order of a question: did, she, buy."""
    if len(clause) < 2:
        return None
    *subject, verb = clause
    verb = verb.lower()
    if verb in BE and " ".join(subject).lower() == "there":
        return [verb, "there"]
    if verb in BASES and subject[-1].lower() in MODALS:
        *subject, auxiliary = subject
        base = verb
    elif verb in AUXILIARIES:
        auxiliary, base = AUXILIARIES[verb]
    else:
        return None
    words = [word.lower() for word in subject]
    if not 0 < len(words) <= _MAX_SUBJECT or "to" in words or _VERB_FORMS.intersection(words):
        return None
    if not all(word.translate(_MARKS_IN_NAMES).isalpha() for word in words):
        return None
    # Words before a pronoun are put at the end: "last week he bought" becomes "did he buy last week".
    pronoun = 0
    for index, word in enumerate(words):
        if word in _PRONOUNS:
            pronoun = index
    if words[0] in _NO_NAMES | _LEADS:
        subject[0] = words[0]
    return [auxiliary.lower(), *subject[pronoun:], base, *subject[:pronoun]]


def capitalized(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]
