"""Part-of-speech tagger of LTP, which Ming et al. (AAAI 2025) use."""

import contextlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from hf_mwp.runtime.numbers.masked_text import find_numbers
from hf_mwp.runtime.problems.math_word_problem import ProblemError
from hf_mwp.utils.checked_types import checked

from .pos_tagger import TaggedWord, fingerprint_of


_RULES = "2"  # version of the rules in this file, which affect the tags
_TASKS = ["cws", "pos"]
_MAX_LENGTH = 500  # characters; neural models silently truncate after 510 tokens (at most one per character)
_SENTENCE_END = re.compile("[。．！？；!?;\n]")
_FILES = ["*.json", "*.txt", "*.bin", "*.model"]


class LtpTagger:
    """
    Part-of-speech tagger for Chinese texts that uses a legacy (perceptron) or neural model of the `ltp` package.

    "The POS tagging datasets are obtained using the latest Chinese NLP tool called LTP" (first paper, section
    Pretraining Tasks). LTP is free for academic and individual research use but paid for commercial use. Therefore, it
    is an optional dependency, and no LTP model is included in hf_mwp.

    Each number is a single word ([`PosTagger`]) with the tag of its first digit. Texts with more than 500 characters
    are split at the ends of sentences. A neural model uses the GPU if there is one. The configuration of a neural
    model can call Python functions and its weights are a torch file, so load only models that you trust.

    `folder_or_id` is the folder or Hub id of a model, with an optional revision: `"LTP/small"`, `"LTP/legacy@main"`.
    Raises `ProblemError` if the ltp package or the model is missing, or the model cannot split and tag texts.
    """

    name = "ltp"

    @checked
    def __init__(self, folder_or_id: str | PathLike):
        self._source = str(folder_or_id)
        try:
            folder = _find_folder(self._source)
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            files = _model_files(folder, config)
            import importlib.metadata

            import ltp

            self.fingerprint = fingerprint_of(["ltp", importlib.metadata.version("ltp"), _RULES], files)
            # LTP prints a message when it loads.
            with contextlib.redirect_stdout(io.StringIO()):
                self._model = ltp.LTP(str(folder))
        except ImportError as error:
            raise ProblemError(
                "the tagger 'ltp' needs the ltp package: pip install \"hf-mwp[ltp]\". LTP is free for academic and "
                "individual research use but paid for commercial use. The tagger 'jieba' is free for any use"
            ) from error
        except Exception as error:
            raise ProblemError(
                f"{self._source} is not a folder with an LTP model that splits and tags texts, or is damaged or "
                f"cannot be downloaded from the Hub ({type(error).__name__}: {error}). Pass a folder with an LTP "
                "model or a Hub id such as LTP/small"
            ) from error
        if config["nerual"]:
            import torch

            tokenizer = self._model.tokenizer
            if not hasattr(tokenizer, "batch_encode_plus"):  # removed in transformers 5
                tokenizer.batch_encode_plus = partial(type(tokenizer).__call__, tokenizer)
            if torch.cuda.is_available():
                self._model.to("cuda")

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Split texts into words and tag them (see [`PosTagger`]), all texts in one call of the model."""
        pieces = []
        positions = []  # index of the text of each piece, and offset there
        for index, text in enumerate(texts):
            for start, piece in _split(text):
                pieces.append(piece)
                positions.append((index, start))
        words: list[list[TaggedWord]] = [[] for _ in texts]
        if pieces:
            # The default tasks include named entities, which some models lack. LTP raises IndexError without texts.
            result = self._model.pipeline(pieces, tasks=_TASKS)
            for piece, (index, start), written, tags in zip(pieces, positions, result.cws, result.pos, strict=True):
                words[index] += locate_words(piece, zip(written, tags, strict=True), start)
        return list(map(join_numbers, texts, words))

    def __reduce__(self) -> tuple:
        return type(self), (self._source,)


def _find_folder(source: str) -> Path:
    """Return the model folder. Downloads the model if `source` is a Hub id."""
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    return Path(snapshot_download(name, revision=revision or None, allow_patterns=_FILES))


def _model_files(folder: Path, config: dict[str, Any]) -> list[Path]:
    """Return the model files that affect the tags."""
    if config["nerual"]:  # sic
        paths = {folder / "config.json", folder / "pytorch_model.bin"}
        for pattern in _FILES:
            paths.update(folder.glob(pattern))
        return sorted(paths)
    return [folder / config["tasks"][task] for task in _TASKS]


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Split a text into pieces of at most `_MAX_LENGTH` characters; yield non-blank pieces with their offsets."""
    start = 0
    while start < len(text):
        end = start + _MAX_LENGTH
        if end < len(text):
            for match in _SENTENCE_END.finditer(text, start, end):
                end = match.end()
        if not text[start:end].isspace():
            yield start, text[start:end]
        start = end


def locate_words(text: str, pairs: Iterable[tuple[str, str]], offset: int = 0) -> list[TaggedWord]:
    """Convert `(word, tag)` pairs to tagged words, split at white space, with `offset` added to their positions."""
    words = []
    position = 0
    for written, tag in pairs:
        for piece in written.split():
            start = text.index(piece, position)
            position = start + len(piece)
            words.append(TaggedWord(piece, tag, start + offset, position + offset))
    return words


def join_numbers(text: str, words: list[TaggedWord]) -> list[TaggedWord]:
    """Merge the words of each number in digits ([`find_numbers`]) into one word with the tag of the first digit."""
    joined: list[TaggedWord] = []
    rest = list(reversed(words))
    for number in find_numbers(text, parse_number_words=False, number_reading="original"):
        first_digit = next(index for index in range(number.start, number.end) if text[index].isnumeric())
        tag = None
        # Keep words before the number. Of words that overlap with the number, keep the parts outside.
        while rest and rest[-1].start < number.end:
            word = rest.pop()
            if word.end <= number.start:
                joined.append(word)
                continue
            if word.start <= first_digit < word.end:
                tag = word.tag
            if word.start < number.start:
                joined.append(TaggedWord(text[word.start : number.start], word.tag, word.start, number.start))
            if word.end > number.end:
                rest.append(TaggedWord(text[number.end : word.end], word.tag, number.end, word.end))
                break
        if tag is not None:
            joined.append(TaggedWord(number.text, tag, number.start, number.end))
    return joined + rest[::-1]
