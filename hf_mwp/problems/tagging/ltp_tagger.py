"""Parts of speech by LTP, the tagger of the first paper."""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ProblemError
from ..fingerprints import fingerprint_of
from .tagged_word import TaggedWord
from .word_alignment import join_numbers, locate_words


# Tags depend on the rules of this file and of word_alignment.py too: a change of them is a new version.
_RULES = "2"
_TASKS = ["cws", "pos"]
# Neural models read 510 tokens, at most one a character, and cut off the rest without a word.
_MAX_LENGTH = 500
_SENTENCE_END = re.compile("[。．！？；!?;\n]")
_FILES = ["*.json", "*.txt", "*.bin", "*.model"]


class LtpTagger:
    """
    Words and tags of Chinese text by a model of the package `ltp`, legacy (perceptron) or neural.

    "The POS tagging datasets are obtained using the latest Chinese NLP tool called LTP" (first paper, section
    Pretraining Tasks). LTP is free for academic and individual research use and paid for commercial use, so it is an
    optional extra, and no model of it comes with this package.

    Each number is one word, as in [`PosTagger`], with the tag that LTP gives to its first digit. Texts longer than 500
    characters are read in pieces, cut behind a sentence if there is one. A neural model runs on the GPU if there is
    one. Its configuration names Python callables, and its weights are a torch file: load models of people you trust.

    Args:
        folder_or_id (`str` or `PathLike`): Folder of a model, or its Hub id, also with a revision: `"LTP/small"`,
            `"LTP/legacy@main"`.

    Raises:
        ProblemError: if the package ltp is missing, the model cannot be found or read, or does not split and tag.
    """

    name = "ltp"

    def __init__(self, folder_or_id: str | PathLike):
        self._source = str(folder_or_id)
        folder = _find_folder(self._source)
        config = _read_config(folder)
        import importlib.metadata

        try:
            import ltp
        except ImportError as error:
            raise ProblemError(
                "the tagger 'ltp' needs the package ltp: pip install \"hf-mwp[ltp]\". It is free for academic and "
                "individual research use and paid for commercial use; the tagger 'jieba' is free for all"
            ) from error
        try:
            # It prints that it loads.
            with contextlib.redirect_stdout(io.StringIO()):
                self._model = ltp.LTP(str(folder))
        except Exception as error:
            raise ProblemError(
                f"{folder}: the LTP model cannot be loaded, its files may be damaged or of another version: {error}"
            ) from error
        missing = set(_TASKS) - set(self._model.supported_tasks)
        if missing:
            raise ProblemError(f"{folder}: the LTP model lacks {', '.join(sorted(missing))}: it has to split and tag")
        if config["nerual"]:
            self._prepare_neural()
        version = importlib.metadata.version("ltp")
        self.fingerprint = fingerprint_of(["ltp", version, _RULES], _model_files(folder, config))

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """See [`PosTagger`]; a batch goes through the model at once."""
        pieces = [(index, start, piece) for index, text in enumerate(texts) for start, piece in _split(text)]
        words: list[list[TaggedWord]] = [[] for _ in texts]
        if pieces:
            # By default it asks for names too, which models may lack; for no texts it raises IndexError.
            result = self._model.pipeline([piece for _, _, piece in pieces], tasks=_TASKS)
            for (index, start, piece), found, tags in zip(pieces, result.cws, result.pos, strict=True):
                words[index] += locate_words(piece, zip(found, tags, strict=True), start)
        return [join_numbers(text, each) for text, each in zip(texts, words, strict=True)]

    def _prepare_neural(self) -> None:
        import torch

        tokenizer = self._model.tokenizer
        if not hasattr(tokenizer, "batch_encode_plus"):  # it is gone from transformers 5
            tokenizer.batch_encode_plus = partial(type(tokenizer).__call__, tokenizer)
        if torch.cuda.is_available():
            self._model.to("cuda")

    def __reduce__(self) -> tuple:
        return type(self), (self._source,)


def _find_folder(source: str) -> Path:
    """The model's folder, downloaded first if it is on the Hub."""
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=_FILES))
    except Exception as error:
        raise ProblemError(
            f"{source} is no folder here, and the Hub does not give it: {type(error).__name__}: {error}. Name a "
            "folder with an LTP model, or a Hub id such as LTP/small where the Hub can be reached"
        ) from error


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        # The misspelt name is LTP's own.
        missing = [file for file in _model_files(folder, config) if not file.is_file()]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ProblemError(
            f"{path} is no readable configuration of an LTP model, with 'nerual' and the files of the tasks "
            f"{' and '.join(_TASKS)}: {type(error).__name__}: {error}"
        ) from error
    if missing:
        raise ProblemError(f"{folder}: the LTP model lacks its file {missing[0].name}")
    return config


def _model_files(folder: Path, config: dict[str, Any]) -> list[Path]:
    """The files that tags depend on."""
    if config["nerual"]:
        present = {path for pattern in _FILES for path in folder.glob(pattern)}
        return sorted(present | {folder / "config.json", folder / "pytorch_model.bin"})
    return [folder / config["tasks"][task] for task in _TASKS]


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Pieces that LTP can read whole, with their offsets; blank ones are left out."""
    start = 0
    while start < len(text):
        end = start + _MAX_LENGTH
        if end < len(text):
            ends = [match.end() for match in _SENTENCE_END.finditer(text, start, end)]
            end = ends[-1] if ends else end
        if not text[start:end].isspace():
            yield start, text[start:end]
        start = end
