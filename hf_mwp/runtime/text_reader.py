"""Reading of texts into tokens and number positions, without Transformers."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..problems import MathWordProblem
from ..problems.clauses import find_question
from ..usage_error import UsageError
from .output_vocabulary import OutputVocabulary
from .processor_fields import FILE_NAME, PROBE, read_fields, vocabulary_digest


@dataclass(frozen=True)
class ReadText:
    """
    A problem as the encoder reads it.

    Args:
        input_ids (`list[int]`): Tokens of the masked text, `max_length` at most.
        number_positions (`list[int]`): Token of each number, -1 for one that was cut off.
    """

    input_ids: list[int]
    number_positions: list[int]


class TextReader:
    """
    Reader of texts that is equal to [`MwpProcessor`], made from its saved files.

    Args:
        folder (`str` or `Path`): The folder of a solver, with `tokenizer.json` and `mwp_processor.json`.

    Raises:
        UsageError: a file is missing or damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        if not (folder / FILE_NAME).is_file():
            raise UsageError(f"{folder / FILE_NAME} does not exist: name the folder of a saved solver.")
        self.fields = read_fields(folder / FILE_NAME)
        self.vocabulary = OutputVocabulary(tuple(self.fields["operators"]), tuple(self.fields["constants"]))
        path = folder / "tokenizer.json"
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # The class that the library raises.
            raise UsageError(f"{path} cannot be read ({error}): fetch or export the folder again.") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        digest = self.fields.get("tokenizer_digest")
        if digest not in (None, vocabulary_digest(self.tokenizer.get_vocab(), self.tokenizer.encode(PROBE).ids)):
            raise UsageError(
                f"{path} is not the tokenizer that {FILE_NAME} was saved with, so the model would read other words: "
                "fetch or export the folder again."
            )
        self.tokenizer.enable_truncation(self.max_length)

    @property
    def language(self) -> str:
        return self.fields.get("language", "zh")

    @property
    def max_length(self) -> int:
        return self.fields.get("max_length", 512)

    @property
    def style(self) -> dict[str, Any]:
        """Style of masked numbers: arguments of [`~problems.MaskedText.text`]."""
        return {"indexed": self.fields.get("indexed_numbers", False), "limit": self.fields.get("num_index_tokens", 16)}

    def problem(self, text: str | MathWordProblem) -> MathWordProblem:
        """Return the problem of a text in the solver's language."""
        if isinstance(text, MathWordProblem):
            return text
        return MathWordProblem(text, language=self.language, parse_number_words=self.fields.get("parse_number_words"))

    def read(self, problem: MathWordProblem) -> ReadText:
        """Return the tokens and number positions of a problem."""
        encoded = self.tokenizer.encode(problem.masked.text(**self.style))
        return ReadText(encoded.ids, find_number_positions(problem, encoded.offsets, self.style))

    def unknown_share(self, input_ids: list[int]) -> float:
        """Return the share of unknown tokens, without placeholders of numbers and special tokens."""
        return share_of_unknown(input_ids, self._unknown, self._aside)

    @cached_property
    def _unknown(self) -> int | None:
        token = getattr(self.tokenizer.model, "unk_token", None)
        return None if token is None else self.tokenizer.token_to_id(token)

    @cached_property
    def _aside(self) -> set[int]:
        special = {index for index, token in self.tokenizer.get_added_tokens_decoder().items() if token.special}
        return special - {self._unknown}


def find_number_positions(
    problem: MathWordProblem, offsets: Sequence[tuple[int, int]], style: Mapping[str, Any]
) -> list[int]:
    """Return the token of each number of a problem, -1 if it was cut off, from the offsets of the tokens."""
    tokens = {start: token for token, (start, end) in enumerate(offsets) if end > start}
    return [tokens.get(start, -1) for start, _ in problem.masked.placeholder_offsets(**style)]


def find_question_positions(
    problem: MathWordProblem, offsets: Sequence[tuple[int, int]], style: Mapping[str, Any]
) -> list[int]:
    """
    Tokens of the question of a problem, in order, from the characters that each token covers; the last token of the
    text where all of the question was cut off, none where the text has no token.
    """
    clauses, place = find_question(problem.masked.text(**style), problem.language)
    start, end = clauses[place] if clauses else (0, 0)
    tokens = [token for token, (first, last) in enumerate(offsets) if last > first]
    return [token for token in tokens if offsets[token][0] < end and start < offsets[token][1]] or tokens[-1:]


def share_of_unknown(input_ids: Sequence[int], unknown: int | None, aside: Container[int]) -> float:
    """Return the share of unknown tokens among those that are not in `aside`."""
    words = [token for token in input_ids if token not in aside]
    return words.count(unknown) / len(words) if words else 0.0
