"""Part-of-speech taggers and their names."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..math_word_problem import ProblemError
from .tagged_word import TaggedWord


QUANTITY_TAGS = {"jieba": frozenset(("m", "mg", "mq", "q")), "ltp": frozenset(("m", "q"))}
"""Tags of numbers and measure words, by the kind of tagger."""


@runtime_checkable
class PosTagger(Protocol):
    """
    Protocol of taggers, which split texts into words and tag them. No word has white space; a number in digits
    ([`find_numbers`]) is one word, because models see one placeholder; tags are the tagger's own.

    Attributes:
        name (`str`): The kind of tagger, e.g. `"jieba"`, which determines the tag set.
        fingerprint (`str`): Depends on the tagger's version, dictionary and model files.
    """

    name: str
    fingerprint: str

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text of a batch, from left to right; texts may be of any length."""
        ...


def load_tagger(name: str) -> PosTagger:
    """
    Return a tagger: `"jieba"`, or `"ltp:"` and the folder or Hub id of an LTP model, such as `"ltp:LTP/small"`.
    `ProblemError` for another name, or if the tagger's package or model is missing.
    """
    kind, source = split_tagger(name)
    if kind == "jieba":
        from .jieba_tagger import JiebaTagger

        return JiebaTagger()
    from .ltp_tagger import LtpTagger

    return LtpTagger(source)


def split_tagger(name: str) -> tuple[str, str]:
    """Return the kind and model of `"ltp:LTP/small"`; `ProblemError` for another name."""
    kind, _, source = name.partition(":")
    if name != "jieba" and (kind != "ltp" or not source):
        raise ProblemError(f"unknown tagger {name!r}: use 'jieba', or 'ltp:' and the folder or Hub id of an LTP model")
    return kind, source
