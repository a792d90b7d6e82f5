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

from ..math_word_problem import ProblemError
from .tagged_word import TaggedWord, fingerprint_of, join_numbers, locate_words


_RULES = "2"  # version of the rules of this file and of tagged_word.py, on which tags depend
_TASKS = ["cws", "pos"]
_MAX_LENGTH = 500  # neural models silently truncate after 510 tokens, at most one a character
_SENTENCE_END = re.compile("[。．！？；!?;\n]")
_FILES = ["*.json", "*.txt", "*.bin", "*.model"]


class LtpTagger:
    """
    Words and tags of Chinese text by a model of the package `ltp`, legacy (perceptron) or neural.

    "The POS tagging datasets are obtained using the latest Chinese NLP tool called LTP" (first paper, section
    Pretraining Tasks). LTP is free for academic and individual research use and paid for commercial use, so it is an
    optional extra, and no model of it comes with this package.

    Each number is one word, as in [`PosTagger`], with the tag that LTP gives to its first digit. Texts of more than
    500 characters are split after a sentence. A neural model runs on the GPU if there is one. Its configuration names
    Python callables, and its weights are a torch file, so load only models that you trust.

    Args:
        folder_or_id (`str` or `PathLike`): Folder of a model, or its Hub id, also with a revision: `"LTP/small"`,
            `"LTP/legacy@main"`.

    Raises:
        ProblemError: the package ltp is not installed, or the model is missing, damaged, or does not split and tag.
    """

    name = "ltp"

    def __init__(self, folder_or_id: str | PathLike):
        self._source = str(folder_or_id)
        folder = _find_folder(self._source)
        path = folder / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            files = _model_files(folder, config)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ProblemError(
                f"{path} is not a configuration of an LTP model, with 'nerual' and the files of the tasks "
                f"{' and '.join(_TASKS)}: {type(error).__name__}: {error}"
            ) from error
        import importlib.metadata

        try:
            import ltp
        except ImportError as error:
            raise ProblemError(
                "the tagger 'ltp' needs the package ltp: pip install \"hf-mwp[ltp]\". It is free for academic and "
                "individual research use and paid for commercial use; the tagger 'jieba' is free for all"
            ) from error
        self.fingerprint = fingerprint_of(["ltp", importlib.metadata.version("ltp"), _RULES], files)
        try:
            # LTP prints a message when it loads.
            with contextlib.redirect_stdout(io.StringIO()):
                self._model = ltp.LTP(str(folder))
        except Exception as error:
            raise ProblemError(f"{folder}: the LTP model is damaged or of another version: {error}") from error
        missing = set(_TASKS) - set(self._model.supported_tasks)
        if missing:
            raise ProblemError(f"{folder}: the LTP model lacks {', '.join(sorted(missing))}: it has to split and tag")
        if config["nerual"]:
            self._prepare_neural()

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """See [`PosTagger`]; a batch goes through the model at once."""
        pieces = [(index, start, piece) for index, text in enumerate(texts) for start, piece in _split(text)]
        words: list[list[TaggedWord]] = [[] for _ in texts]
        if pieces:
            # By default LTP asks for names too, which models may lack; without texts it raises IndexError.
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
    """Return the model's folder, after a download if it is on the Hub."""
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=_FILES))
    except Exception as error:
        raise ProblemError(
            f"{source} is not a folder, and cannot be downloaded from the Hub: {type(error).__name__}: {error}. Name a"
            " folder with an LTP model, or a Hub id such as LTP/small"
        ) from error


def _model_files(folder: Path, config: dict[str, Any]) -> list[Path]:
    """Return the files that tags depend on."""
    if config["nerual"]:  # sic
        present = {path for pattern in _FILES for path in folder.glob(pattern)}
        return sorted(present | {folder / "config.json", folder / "pytorch_model.bin"})
    return [folder / config["tasks"][task] for task in _TASKS]


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yield pieces that LTP can read whole, with their offsets, without blank ones."""
    start = 0
    while start < len(text):
        end = start + _MAX_LENGTH
        if end < len(text):
            ends = [match.end() for match in _SENTENCE_END.finditer(text, start, end)]
            end = ends[-1] if ends else end
        if not text[start:end].isspace():
            yield start, text[start:end]
        start = end
