"""A problem text with its numbers taken out."""

from collections.abc import Sequence
from dataclasses import dataclass

from .number_finding import find_numbers
from .number_mention import NumberMention


@dataclass(frozen=True)
class MaskedText:
    """
    The pieces of a text between its numbers, and the numbers.

    Keeping pieces, not a string with placeholders, makes masking exactly invertible for every text, also for one that
    holds a placeholder of its own.
    """

    segments: tuple[str, ...]  # before, between and after the numbers: one more than there are numbers
    mentions: tuple[NumberMention, ...]

    def placeholders(self, indexed: bool = False, limit: int | None = None) -> list[str]:
        """
        Return what stands for each number: `[NUM]`, or if `indexed` `[NUM0]`, `[NUM1]`, ...; of these there are
        `limit` at most, and the numbers after them get the plain placeholder.
        """
        count = len(self.mentions)
        with_index = 0 if not indexed else count if limit is None else min(limit, count)
        return [f"[NUM{index}]" for index in range(with_index)] + ["[NUM]"] * (count - with_index)

    def text(self, indexed: bool = False, limit: int | None = None) -> str:
        """The masked text. Arguments as in [`~MaskedText.placeholders`]."""
        return self._join(self.placeholders(indexed, limit))

    def placeholder_offsets(self, indexed: bool = False, limit: int | None = None) -> list[tuple[int, int]]:
        """
        Half-open character range of each placeholder in what [`~MaskedText.text`] returns for the same arguments.

        With them the numbers can be told from a placeholder that was in the text from the start.
        """
        offsets, end = [], 0
        for segment, name in zip(self.segments[:-1], self.placeholders(indexed, limit), strict=True):
            start = end + len(segment)
            end = start + len(name)
            offsets.append((start, end))
        return offsets

    def rebuild(self) -> str:
        """The original text, character by character."""
        return self._join([mention.text for mention in self.mentions])

    def _join(self, fillings: Sequence[str]) -> str:
        parts = [self.segments[0]]
        for filling, segment in zip(fillings, self.segments[1:], strict=True):
            parts += (filling, segment)
        return "".join(parts)


def mask_numbers(text: str, language: str = "zh", parse_number_words: bool | None = None) -> MaskedText:
    """
    Mask the numbers of a text.

    Args:
        text (`str`): The problem text.
        language (`str`, *optional*, defaults to `"zh"`): As in [`find_numbers`].
        parse_number_words (`bool`, *optional*): As in [`find_numbers`].

    Example:

    ```python
    >>> masked = mask_numbers("小明有4个苹果和2个梨")
    >>> masked.text()
    '小明有[NUM]个苹果和[NUM]个梨'
    >>> masked.rebuild()
    '小明有4个苹果和2个梨'
    ```
    """
    mentions = tuple(find_numbers(text, language, parse_number_words))
    starts = [0, *(mention.end for mention in mentions)]
    ends = [*(mention.start for mention in mentions), len(text)]
    segments = tuple(text[start:end] for start, end in zip(starts, ends, strict=True))
    return MaskedText(segments, mentions)
