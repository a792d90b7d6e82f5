"""The part-of-speech tagger protocol, and a function that loads a tagger by name."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..math_word_problem import ProblemError
from .tagged_word import TaggedWord


QUANTITY_TAGS = {"jieba": frozenset(("m", "mg", "mq", "q")), "ltp": frozenset(("m", "q"))}
"""Tags for numbers and measure words, by kind of tagger."""


@runtime_checkable
class PosTagger(Protocol):
    """
    Protocol for taggers, which split texts into words and assign part-of-speech tags. Words contain no white space. A
    number in digits ([`find_numbers`]) is a single word, because models receive a single placeholder. The tag set
    depends on the tagger.

    Attributes:
        name (`str`): Kind of tagger, such as `"jieba"`, which determines the tag set.
        fingerprint (`str`): Hash of the version, dictionary and model files of the tagger.
    """

    name: str
    fingerprint: str

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the tagged words of each text, from left to right. Texts may have any length."""
        ...


def load_tagger(name: str) -> PosTagger:
    """
    Load a tagger by name: `"jieba"`, or `"ltp:"` followed by the folder or Hub id of an LTP model, such as
    `"ltp:LTP/small"`. Raises `ProblemError` if the name is invalid, or if the package or model is missing.
    """
    kind, source = split_tagger(name)
    if kind == "jieba":
        from .jieba_tagger import JiebaTagger

        return JiebaTagger()
    from .ltp_tagger import LtpTagger

    return LtpTagger(source)


def split_tagger(name: str) -> tuple[str, str]:
    """Split a name such as `"ltp:LTP/small"` into kind and model. Raises `ProblemError` if the name is invalid."""
    kind, _, source = name.partition(":")
    if name != "jieba" and (kind != "ltp" or not source):
        raise ProblemError(f"unknown tagger {name!r}: use 'jieba', or 'ltp:' + the folder or Hub id of an LTP model")
    return kind, source
