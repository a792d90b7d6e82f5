"""Selection of the files of a model folder to upload to the Hub."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_texts import TrainingTexts
from ..models.mwp_student.remote_code import FILES
from ..plausibility import PlausibilityReranker
from ..runtime.default_search import DefaultSearch
from ..usage_error import UsageError
from .model_card import RECORD


CARD, CONFIG, WEIGHTS = "README.md", "config.json", "model.safetensors"
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("vocab.txt", "merges.txt", "chat_template.jinja", "*.spm", "spiece.model", "sentencepiece.bpe.model"),
)
PUBLISHED = (
    *(CARD, CONFIG, WEIGHTS, RECORD, "NOTICE*", "LICENSE*", "export.json", "encoder.onnx", *TOKENIZER, *FILES),
    *("use_hf_mwp.py", "cut_model.py", "architecture.py", "slicing.py"),
    *(MwpProcessor.file_name, PlausibilityReranker.file_name, DefaultSearch.file_name, TrainingTexts.file_name),
)
_OWN_NAME = re.compile(r'((?:\bmodel=|from_pretrained\()")[^"]*(?=")')


def select_files(folder: Path) -> dict[str, Path]:
    """
    Return the files of a folder to upload, by name: card, configuration, weights, processor, re-ranker, digests of
    training texts, record, and the code of an encoder. Checkpoints, logs, run options and pickles are left out.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: path for path in files if any(fnmatch(path.name, each) for each in PUBLISHED)}


def check_files(folder: Path) -> None:
    """Raise `UsageError` if a required file is missing in a folder, or the weights are damaged."""
    if missing := [name for name in (CONFIG, CARD, RECORD, WEIGHTS) if not (folder / name).is_file()]:
        raise UsageError(
            f"{folder} cannot be published because {missing[0]} is missing. Create a complete folder with `hf-mwp "
            f"card --model {folder} --output_dir NEW`."
        )
    try:
        with safe_open(folder / WEIGHTS, "pt"):
            pass
    except SafetensorError as error:
        raise UsageError(f"{folder / WEIGHTS} is damaged ({error}). Save the model again.") from error


def name_in_card(text: str, repo_id: str) -> str:
    """Return the card text with `repo_id` as the model name in its examples."""
    head, title, rest = text.partition("\n## How to use\n")
    usage, next_title, rest = rest.partition("\n## ")
    return head + title + _OWN_NAME.sub(rf"\g<1>{repo_id}", usage) + next_title + rest
