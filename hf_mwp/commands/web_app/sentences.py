"""Words of the page in English and Chinese, and Chinese translations of the sentences of the runtime."""

import re
import tomllib
from functools import cache
from importlib.resources import files


LANGUAGES = ("en", "zh")
_FIELD = re.compile(r"\\\{(\w+)\\\}")  # in a template after `re.escape`


def _read(name: str) -> dict:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def page_words() -> dict[str, dict[str, str]]:
    """Return the words of the page by language and name."""
    return _read("words.toml")


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Return a pattern for each English sentence, and its Chinese template."""
    templates = []
    for english, chinese in _read("sentences_zh.toml").items():
        pattern = _FIELD.sub(r"(?P<\1>.*?)", re.escape(english))
        templates.append((re.compile(pattern, flags=re.DOTALL), chinese))
    return templates


def in_chinese(sentence: str) -> str | None:
    """
    Return the Chinese for an English sentence of the runtime, or `None` if `sentences_zh.toml` has no row for it.

    Example:

    ```python
    >>> in_chinese("The text divides by zero (1/0), which has no value.")
    '题目中除以零（1/0），没有结果。'
    ```
    """
    for pattern, chinese in _templates():
        match = pattern.fullmatch(sentence)
        if match is not None:
            fields = {name: _field_in_chinese(text) for name, text in match.groupdict().items()}
            return chinese.format(**fields)
    return None


def _field_in_chinese(text: str) -> str:
    """Translate the text of a field: the name of a kind, or sentences that are separated by semicolons. Anything else
    remains as it is."""
    sentences = [in_chinese(sentence) or sentence for sentence in text.split("; ")]
    return "；".join(sentences)


def in_both_languages(sentence: str) -> dict[str, str]:
    """Return a sentence of the runtime by language. Without a translation, the Chinese one is English, too."""
    return {"en": sentence, "zh": in_chinese(sentence) or sentence}
