"""Part-of-speech taggers and their names."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..errors import ProblemError
from .tagged_word import TaggedWord


QUANTITY_TAGS = {"jieba": frozenset(("m", "mg", "mq", "q")), "ltp": frozenset(("m", "q"))}
"""Tags of numbers and measure words, by the kind of tagger."""


@runtime_checkable
class PosTagger(Protocol):
    """
    Splits texts into words and tags them.

    All taggers agree on three things: white space is in no word; a number of the text in digits, as
    [`find_numbers`] sees it, is one word, since models see one placeholder there; tags are the tagger's own.

    Attributes:
        name (`str`): The kind of tagger, e.g. `"jieba"`: with it the tag set is known.
        fingerprint (`str`): Changes with all that may change a tag: the tagger's version, dictionary or model files.
    """

    name: str
    fingerprint: str

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Words of each text of a batch, from left to right; texts may be of any length."""
        ...


def load_tagger(name: str) -> PosTagger:
    """
    A tagger by its name: `"jieba"`, or `"ltp:"` and the folder or Hub id of an LTP model, as in `"ltp:LTP/small"` or
    `"ltp:models/legacy"`. `ProblemError` for another name, and if the tagger's package or model is missing.
    """
    kind, source = split_tagger(name)
    if kind == "jieba":
        from .jieba_tagger import JiebaTagger

        return JiebaTagger()
    from .ltp_tagger import LtpTagger

    return LtpTagger(source)


def split_tagger(name: str) -> tuple[str, str]:
    """Kind and model of `"ltp:LTP/small"`; `ProblemError` if it names no tagger."""
    kind, _, source = name.partition(":")
    if name != "jieba" and (kind != "ltp" or not source):
        raise ProblemError(
            f"there is no tagger {name!r}: name 'jieba', or 'ltp:' and the folder or Hub id of an LTP model, "
            "for instance 'ltp:LTP/small'"
        )
    return kind, source
