"""Tokenization of problems and number positions, and the processor's file, without Transformers."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from hf_mwp.utils.json_fields import (
    FLAG,
    TEXT,
    check_fields,
    choice,
    damaged,
    integer,
    list_of,
    optional,
    read_mapping,
)
from hf_mwp.utils.unknown_tokens import share_of_unknown
from hf_mwp.utils.usage_error import UsageError

from .numbers.masked_text import DEFAULT_READING, NUMBER_READINGS
from .output_vocabulary import OutputVocabulary, check_symbols
from .problems import MathWordProblem
from .problems.clauses import find_question


Offsets = Sequence[tuple[int, int]]
FILE_NAME = "mwp_processor.json"
TOKENIZER_NAME = "tokenizer.json"
# Fields of the file. The last ones are only for decoders that need more inputs than number positions, or further
# constants to write expressions, and the digest is missing in folders of the first version.
PROCESSOR = {
    "operators": list_of(TEXT),
    "constants": list_of(TEXT),
    "language": optional(choice("zh", "en"), default="zh"),
    "parse_number_words": optional(FLAG),
    "number_reading": optional(choice(*NUMBER_READINGS), default=DEFAULT_READING),
    "indexed_numbers": optional(FLAG, default=False),
    "num_index_tokens": optional(integer(0, 10_000), default=16),
    "max_length": optional(integer(1, 1_000_000), default=512),
    "extra_columns": optional(list_of(TEXT), default=()),
    "written_constants": optional(list_of(TEXT), default=()),
    "tokenizer_digest": optional(TEXT),
}
# Text that tokenizers with the same vocabulary may split differently: capitals, accents, Chinese, spaces, numbers.
PROBE = "Tom has [NUM0] APPLES,  Zoë's [NUM]; 小明有[NUM1]个苹果， 一共12.5千克？"
# Maximum number of characters that the replacements of a tokenizer may make of one.
MAX_GROWTH = 16


class TextReader:
    """Reader of problems, like the [`MwpProcessor`] in a folder. Raises `UsageError` for a missing or damaged file."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self.fields = read_fields(folder / FILE_NAME)
        self.vocabulary = OutputVocabulary(tuple(self.fields["operators"]), tuple(self.fields["constants"]))
        self.language = self.fields["language"]
        self.max_length = self.fields["max_length"]
        # Style of number placeholders, as arguments for `MaskedText.text`.
        self.style = {"indexed": self.fields["indexed_numbers"], "limit": self.fields["num_index_tokens"]}
        path = folder / TOKENIZER_NAME
        self.tokenizer = open_tokenizer(path, self.fields)
        digest = vocabulary_digest(self.tokenizer.get_vocab(), self.tokenizer.encode(PROBE).ids)
        if self.fields["tokenizer_digest"] not in (None, digest):
            raise UsageError(foreign_tokenizer(path))
        self.tokenizer.enable_truncation(self.max_length)

    def limit_length(self, positions: int) -> None:
        """Lower `max_length` to the number of positions of an encoder, as `MwpProcessor.limit_length` does."""
        self.max_length = min(self.max_length, positions)
        self.tokenizer.enable_truncation(self.max_length)

    def problem(self, text: str | MathWordProblem) -> MathWordProblem:
        """Create a problem from a text in the solver's language."""
        if isinstance(text, MathWordProblem):
            return text
        return MathWordProblem(
            text,
            language=self.language,
            parse_number_words=self.fields["parse_number_words"],
            number_reading=self.fields["number_reading"],
        )

    def read(self, problem: MathWordProblem) -> tuple[list[int], list[int]]:
        """Return the tokens of a problem and the token index of each number, see [`find_number_positions`]."""
        encoded = self.tokenizer.encode(problem.masked.text(**self.style))
        return encoded.ids, find_number_positions(problem, encoded.offsets, self.style)

    def unknown_share(self, input_ids: list[int]) -> float:
        """Return the share of unknown tokens, not counting number placeholders and special tokens."""
        return share_of_unknown(input_ids, *self._unknown_and_aside)

    @cached_property
    def _unknown_and_aside(self) -> tuple[int | None, set[int]]:
        """Id of the unknown token, and ids of the other special tokens."""
        # A Unigram model does not tell its unknown token.
        unknown = None
        for name in (getattr(self.tokenizer.model, "unk_token", None), "<unk>", "[UNK]"):
            if unknown is None and name:
                unknown = self.tokenizer.token_to_id(name)
        added_tokens = self.tokenizer.get_added_tokens_decoder()
        special = {token_id for token_id, token in added_tokens.items() if token.special}
        return unknown, special - {unknown}


def read_fields(path: str | PathLike) -> dict[str, Any]:
    """Return the fields of a processor's file. Raises `UsageError` if the file or a field is invalid."""
    path = Path(path)
    fields = check_fields(read_mapping(path), PROCESSOR, path, closed=True)
    check_symbols(fields["operators"], fields["constants"], path)
    return fields


def open_tokenizer(path: Path, fields: Mapping[str, Any]) -> Tokenizer:
    """Open a tokenizer without padding and truncation, and check that it can read problems with the `fields` of a
    processor. Raises `UsageError` if the file is damaged, if its replacements make much text of little, if it lacks a
    placeholder of numbers, or if it adds as many tokens to a text as `max_length` allows."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
        check_growth(tokenizer, path)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        # A character that no vocabulary has needs the token for unknown words.
        tokenizer.encode(f"{PROBE}\U0010fffd")
        added = tokenizer.num_special_tokens_to_add(False)
    except UsageError:
        raise
    except Exception as error:  # The library raises no subclass.
        raise damaged(f"{path} cannot be read ({error})") from error
    placeholders = ["[NUM]"]
    if fields["indexed_numbers"]:
        placeholders += [f"[NUM{index}]" for index in range(fields["num_index_tokens"])]
    for name in placeholders:
        if tokenizer.token_to_id(name) is None:
            raise damaged(f"{path} lacks the token {name} of {FILE_NAME}")
    if added >= fields["max_length"]:
        raise damaged(
            f"{path} adds {added} tokens to a text, but `max_length` of {FILE_NAME} is {fields['max_length']}"
        )
    return tokenizer


def check_fit(
    folder: str | Path, own: OutputVocabulary, decoder: OutputVocabulary, tokenizer: Tokenizer, num_embeddings: int
) -> None:
    """Raise `UsageError` if the processor and the model of a folder have different symbols, or if the tokenizer has
    ids that are not among the rows of the encoder's embeddings."""
    if own != decoder:
        raise UsageError(f"{folder}: {FILE_NAME} and config.json have different symbols. Save both again.")
    num_tokens = tokenizer.get_vocab_size()
    if num_tokens > num_embeddings:
        raise UsageError(
            f"{folder}: the tokenizer has {num_tokens} tokens, the encoder {num_embeddings}. Save both again."
        )
    highest = max(*tokenizer.get_vocab().values(), *tokenizer.encode(PROBE).ids)
    if highest >= num_embeddings:
        path = Path(folder) / TOKENIZER_NAME
        raise damaged(f"{path}: the id {highest:,} is not among the {num_embeddings:,} embeddings of the encoder")


def check_growth(tokenizer: Tokenizer, path: Path) -> None:
    """Raise `UsageError` if the replacements of a tokenizer may make more than `MAX_GROWTH` characters of one."""
    growth = 1
    normalizers = []
    if tokenizer.normalizer is not None:
        normalizers.append(json.loads(tokenizer.normalizer.__getstate__()))
    while normalizers:
        normalizer = normalizers.pop()
        normalizers += normalizer.get("normalizers", ())
        if normalizer["type"] == "Replace":
            old_length = len(normalizer["pattern"].get("String", ""))
            new_length = len(normalizer["content"])
            # A regular expression may match the empty text before and after a character.
            factor = new_length / old_length if old_length else new_length + 1
            growth *= max(1, factor)
    if growth > MAX_GROWTH:
        raise damaged(f"{path}: the normalizer may replace a character by {growth:,.0f}, more than {MAX_GROWTH}")


def foreign_tokenizer(path: str | PathLike) -> str:
    """Return the sentence on a tokenizer that is not the one of the processor's file beside it."""
    return f"{path} does not belong to {FILE_NAME}. Download or export the solver again, or save the processor again."


def vocabulary_digest(vocabulary: Mapping[str, int], probe_ids: Sequence[int]) -> str:
    """Return a digest of a tokenizer's vocabulary and its ids for `PROBE`."""
    # The file is not compared, because different library versions write different files for the same tokenizer.
    # The JSON text of `[sorted(vocabulary.items()), probe_ids]` is read in parts, which takes less memory.
    digest = hashlib.blake2b(b"[[", digest_size=16)
    separator = ""
    for token in sorted(vocabulary):
        entry = json.dumps([token, vocabulary[token]])
        digest.update(f"{separator}{entry}".encode())
        separator = ", "
    digest.update(f"], {json.dumps(list(probe_ids))}]".encode())
    return digest.hexdigest()


def find_number_positions(problem: MathWordProblem, offsets: Offsets, style: Mapping[str, Any]) -> list[int]:
    """Return the token index of each number in a problem, from token offsets, up to the last number that has a token.
    Numbers in the truncated part of the text are left out, so that they are no candidates of the decoder."""
    tokens = {start: token for token, (start, end) in enumerate(offsets) if end > start}
    last_start = max(tokens, default=-1)
    positions = []
    for start, _ in problem.masked.placeholder_offsets(**style):
        if start <= last_start:
            positions.append(tokens.get(start, -1))
    while positions and positions[-1] < 0:
        positions.pop()
    return positions


def count_cut(problem: MathWordProblem, number_positions: Sequence[int]) -> int:
    """Return how many numbers of a problem have no token, from the result of [`find_number_positions`]."""
    return len(problem.numbers) - sum(position >= 0 for position in number_positions)


def find_question_positions(problem: MathWordProblem, offsets: Offsets, style: Mapping[str, Any]) -> list[int]:
    """Return the indices of the tokens in the question or, if it was cut off, of the text's last token."""
    clauses, question_index = find_question(problem.masked.text(**style), problem.language)
    start, end = clauses[question_index] if clauses else (0, 0)
    tokens = []
    question_tokens = []
    for token, (token_start, token_end) in enumerate(offsets):
        # Special tokens are empty.
        if token_start < token_end:
            tokens.append(token)
            if token_start < end and start < token_end:
                question_tokens.append(token)
    return question_tokens or tokens[-1:]
