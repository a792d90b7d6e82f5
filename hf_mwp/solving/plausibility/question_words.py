"""Words of a language that say what a problem asks for; they are data: `words_zh.yaml` and `words_en.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...problems.numbers.number_finding import LANGUAGES


@dataclass(frozen=True)
class QuestionWords:
    """
    The word file of a language, ready to be looked for.

    Args:
        language (`str`): `"zh"` or `"en"`.
        kind_of (`Mapping[str, str]`): The kind of each unit: `"counted"`, `"money"`, ...
        same (`Mapping[str, str]`): For units with several names the one that stands for all.
        asks (`re.Pattern`): A word that asks for an amount, with the unit behind it as its group, if there is one.
        unit (`re.Pattern`): A unit behind a number, as its group.
        question (`re.Pattern`): What makes a clause the question.
        kinds, cues (`Mapping[str, re.Pattern]`): What else shows that a kind is asked for; and other hints.
        rate (`re.Pattern`): What before a number makes it one for one of something else.
        ratio (`re.Pattern`): What behind a number makes it a share or a multiple.
        counts_nouns (`bool`): Whether a noun that is no unit of the file is counted, and is the unit of its number.
        word (`re.Pattern`): A word, or a character of a language that is written without spaces.
        ignored (`frozenset[str]`): Words that say nothing of what a clause is about.
    """

    language: str
    kind_of: Mapping[str, str]
    same: Mapping[str, str]
    asks: re.Pattern[str]
    unit: re.Pattern[str]
    question: re.Pattern[str]
    kinds: Mapping[str, re.Pattern[str]]
    cues: Mapping[str, re.Pattern[str]]
    rate: re.Pattern[str]
    ratio: re.Pattern[str]
    counts_nouns: bool
    word: re.Pattern[str]
    ignored: frozenset[str]

    def content(self, clause: str) -> frozenset[str]:
        """The words of a clause that say what it is about."""
        return frozenset(self.word.findall(clause.lower())) - self.ignored

    def name_of(self, unit: str | None) -> str | None:
        """The one name of a unit."""
        if unit is None:
            return None
        unit = unit.lower()
        if self.counts_nouns and self.kind_of.get(unit, "counted") == "counted":
            unit = unit.removesuffix("s")
        return self.same.get(unit, unit)


@cache
def read_question_words(language: str) -> QuestionWords:
    """The words of a language; `ValueError` for another one than `"zh"` and `"en"`."""
    import yaml

    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    content = yaml.safe_load(Path(__file__).with_name(f"words_{language}.yaml").read_text(encoding="utf-8"))
    kind_of = {unit.lower(): kind["name"] for kind in content["kinds"] for unit in kind.get("units", ())}
    nouns = bool(content.get("counts_nouns"))
    unit = _any_of(kind_of) + ("|[a-z]{3,}" if nouns else "")
    between = rf"[\s（(]*(?:(?:{_any_of(content['between'])})\s+)*" if content.get("between") else r"[\s（(]*"
    compile_words = {group["name"]: _pattern(_any_of(group["words"])) for group in content["cues"]}
    return QuestionWords(
        language=language,
        kind_of=kind_of,
        same={name: names[0] for names in content["same"] for name in names},
        asks=_pattern(f"(?:{_any_of(content['asks'])}){between}({unit})?"),
        unit=_pattern(rf"{between}({unit})(?!\s*[/／每])"),
        question=_pattern(_any_of(content["question_marks"])),
        kinds={kind["name"]: _pattern(_any_of(kind["words"])) for kind in content["kinds"] if kind.get("words")},
        cues=compile_words,
        rate=_pattern(_any_of(content["rates"])),
        ratio=_pattern(rf"\s*(?:{_any_of(content['ratios'])})"),
        counts_nouns=nouns,
        word=re.compile("[a-z]{3,}" if language == "en" else "[\u3400-\u9fff]"),
        ignored=frozenset(word for text in content["ignored"] for word in (text.split() if " " in text else text)),
    )


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first; those of letters as whole words."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(
        rf"\b{re.escape(word)}\b" if re.fullmatch(r"[a-z][a-z ]*", word) else re.escape(word) for word in ordered
    )


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, flags=re.IGNORECASE)
