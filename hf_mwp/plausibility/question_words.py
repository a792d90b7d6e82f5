"""Words that show what a problem asks for, read from `words_zh.toml` and `words_en.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path


class QuestionWords:
    """
    Patterns of a language's word file.

    Args:
        language (`str`): `"zh"` or `"en"`.
    """

    def __init__(self, language: str) -> None:
        content = tomllib.loads(Path(__file__).with_name(f"words_{language}.toml").read_text(encoding="utf-8"))
        kinds = {kind["name"]: kind for kind in content["kinds"]}
        # The kind of each unit, and for units with several names the one that stands for all.
        self.kind_of = {unit.lower(): name for name, kind in kinds.items() for unit in kind.get("units", ())}
        self.same = {name: names[0] for names in content["same"] for name in names}
        # Whether a noun that is no unit of the file is counted, and is the unit of its number.
        self.counts_nouns = bool(content.get("counts_nouns"))
        unit = _any_of(self.kind_of) + ("|[a-z]{3,}" if self.counts_nouns else "")
        between = rf"[\s（(]*(?:(?:{_any_of(content['between'])})\s+)*" if content.get("between") else r"[\s（(]*"
        # A word that asks for an amount, with the unit behind it as its group; and a unit behind a number.
        self.asks = _pattern(f"(?:{_any_of(content['asks'])}){between}({unit})?")
        self.unit = _pattern(rf"{between}({unit})(?!\s*[/／每])")
        # Words of the question that show its kind or give another hint.
        self.kinds = {name: _pattern(_any_of(kind["words"])) for name, kind in kinds.items() if kind.get("words")}
        self.cues = {cue["name"]: _pattern(_any_of(cue["words"])) for cue in content["cues"]}
        # What before a number makes it one for one of something else, and behind it a share or multiple.
        self.rate = _pattern(_any_of(content["rates"]))
        self.ratio = _pattern(rf"\s*(?:{_any_of(content['ratios'])})")
        # A word, or a character of a language without spaces, and those that say nothing of a clause's content.
        self.word = re.compile("[a-z]{3,}" if language == "en" else "[\u3400-\u9fff]")
        self.ignored = {word for text in content["ignored"] for word in (text.split() if " " in text else text)}

    def content(self, clause: str) -> set[str]:
        """Return the content words of a clause."""
        return set(self.word.findall(clause.lower())) - self.ignored

    def name_of(self, unit: str | None) -> str | None:
        """Return the canonical name of a unit."""
        if unit is None:
            return None
        unit = unit.lower()
        if self.counts_nouns and self.kind_of.get(unit, "counted") == "counted":
            unit = unit.removesuffix("s")
        return self.same.get(unit, unit)


@cache
def read_question_words(language: str) -> QuestionWords:
    """Return the words of a language, `"zh"` or `"en"`, read once."""
    return QuestionWords(language)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, the longest first; those of letters match as whole words."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(
        rf"\b{re.escape(word)}\b" if re.fullmatch(r"[a-z][a-z ]*", word) else re.escape(word) for word in ordered
    )


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, flags=re.IGNORECASE)
