"""Tokenization of problems and number positions, and the processor's file, without Transformers."""

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..problems import MathWordProblem
from ..problems.clauses import find_question
from ..problems.numbers.masked_text import DEFAULT_READING, NUMBER_READINGS
from ..usage_error import UsageError
from .output_vocabulary import OutputVocabulary


Offsets = Sequence[tuple[int, int]]
FILE_NAME = "mwp_processor.json"
KINDS = {
    "operators": (list,),
    "constants": (list,),
    "language": (str,),
    "parse_number_words": (bool, type(None)),
    "number_reading": (str,),
    "indexed_numbers": (bool,),
    "num_index_tokens": (int,),
    "max_length": (int,),
    # Only for decoders that need more inputs than number positions, or further constants to write expressions.
    "extra_columns": (list,),
    "written_constants": (list,),
    # Missing in folders of the first version.
    "tokenizer_digest": (str, type(None)),
}
# Text that tokenizers with the same vocabulary may split differently: capitals, accents, Chinese, spaces, numbers.
PROBE = "Tom has [NUM0] APPLES,  Zoë's [NUM]; 小明有[NUM1]个苹果， 一共12.5千克？"


class TextReader:
    """Reader of problems, like the [`MwpProcessor`] in a folder. Raises `UsageError` for a missing or damaged file."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        if not (folder / FILE_NAME).is_file():
            raise UsageError(f"{folder / FILE_NAME} does not exist. Pass the folder of a saved solver.")
        self.fields = read_fields(folder / FILE_NAME)
        self.vocabulary = OutputVocabulary(tuple(self.fields["operators"]), tuple(self.fields["constants"]))
        self.language, self.max_length = self.fields.get("language", "zh"), self.fields.get("max_length", 512)
        # Style of number placeholders, as arguments for `MaskedText.text`.
        indexed, limit = self.fields.get("indexed_numbers", False), self.fields.get("num_index_tokens", 16)
        self.style = {"indexed": indexed, "limit": limit}
        path = folder / "tokenizer.json"
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # The library raises no subclass.
            raise UsageError(f"{path} cannot be read ({error}). Download or export the solver again.") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        digest = self.fields.get("tokenizer_digest")
        if digest not in (None, vocabulary_digest(self.tokenizer.get_vocab(), self.tokenizer.encode(PROBE).ids)):
            raise UsageError(f"{path} does not belong to {FILE_NAME}. Download or export the solver again.")
        self.tokenizer.enable_truncation(self.max_length)

    def problem(self, text: str | MathWordProblem) -> MathWordProblem:
        """Create a problem from a text in the solver's language."""
        if isinstance(text, MathWordProblem):
            return text
        return MathWordProblem(
            text,
            language=self.language,
            parse_number_words=self.fields.get("parse_number_words"),
            number_reading=self.fields.get("number_reading", DEFAULT_READING),
        )

    def read(self, problem: MathWordProblem) -> tuple[list[int], list[int]]:
        """Return the tokens of a problem and the token index of each number, -1 for numbers that were cut off."""
        encoded = self.tokenizer.encode(problem.masked.text(**self.style))
        return encoded.ids, find_number_positions(problem, encoded.offsets, self.style)

    def unknown_share(self, input_ids: list[int]) -> float:
        """Return the share of unknown tokens, not counting number placeholders and special tokens."""
        return share_of_unknown(input_ids, *self._unknown_and_aside)

    @cached_property
    def _unknown_and_aside(self) -> tuple[int | None, set[int]]:
        """Id of the unknown token, and ids of the other special tokens."""
        # A Unigram model does not tell its unknown token.
        names = getattr(self.tokenizer.model, "unk_token", None), "<unk>", "[UNK]"
        found = (self.tokenizer.token_to_id(name) for name in names if name)
        unknown = next((index for index in found if index is not None), None)
        special = {index for index, token in self.tokenizer.get_added_tokens_decoder().items() if token.special}
        return unknown, special - {unknown}


def read_fields(path: str | PathLike) -> dict[str, Any]:
    """Return the fields of a processor's file. Raises `UsageError` if the file or a field is invalid."""
    try:
        fields = json.loads(Path(path).read_text("utf-8"))
        missing = [name for name in ("operators", "constants") if name not in fields.keys()]
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{path} is not a valid MwpProcessor file ({error}). Save the processor again.") from error
    fault = f"has no fields {missing}" if missing else None
    for name, value in fields.items():
        texts = value if isinstance(value, list) else ()
        if name not in KINDS:
            fault = f"has unknown fields {[name]}, perhaps of a newer version of hf_mwp (known fields: {[*KINDS]})"
        # Compare types exactly, because `bool` is a subclass of `int`.
        elif type(value) not in KINDS[name] or not all(isinstance(each, str) for each in texts):
            fault = f"has the invalid value {value!r} for {name!r}"
        elif name == "number_reading" and value not in NUMBER_READINGS:
            known = ", ".join(NUMBER_READINGS)
            fault = f"has the unknown {name!r} {value!r}, perhaps of a newer version of hf_mwp (known: {known})"
    if fault is not None:
        raise UsageError(f"{path} {fault}. Save the processor again.")
    return fields


def vocabulary_digest(vocabulary: Mapping[str, int], probe_ids: Sequence[int]) -> str:
    """Return a digest of a tokenizer's vocabulary and its ids for `PROBE`."""
    # The file is not compared, because different library versions write different files for the same tokenizer.
    parts = [sorted(vocabulary.items()), list(probe_ids)]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def find_number_positions(problem: MathWordProblem, offsets: Offsets, style: Mapping[str, Any]) -> list[int]:
    """Return the token index of each number in a problem, -1 for numbers that were cut off, from token offsets."""
    tokens = {start: token for token, (start, end) in enumerate(offsets) if end > start}
    return [tokens.get(start, -1) for start, _ in problem.masked.placeholder_offsets(**style)]


def find_question_positions(problem: MathWordProblem, offsets: Offsets, style: Mapping[str, Any]) -> list[int]:
    """Return the indices of the tokens in the question or, if it was cut off, of the text's last token."""
    clauses, place = find_question(problem.masked.text(**style), problem.language)
    start, end = clauses[place] if clauses else (0, 0)
    tokens = [token for token, (first, last) in enumerate(offsets) if last > first]
    return [token for token in tokens if offsets[token][0] < end and start < offsets[token][1]] or tokens[-1:]


def share_of_unknown(input_ids: Sequence[int], unknown: int | None, aside: Container[int]) -> float:
    """Return the share of unknown tokens among the tokens that are not in `aside`."""
    words = [token for token in input_ids if token not in aside]
    return words.count(unknown) / len(words) if words else 0.0
