"""Selection of the files of a model folder to upload to the Hub, with the weights in one file."""

from __future__ import annotations

import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_texts import TrainingTexts
from ..models.mwp_student import save_student_code
from ..models.mwp_student.remote_code import FILES
from ..plausibility import PlausibilityReranker
from ..runtime.default_search import DefaultSearch
from ..runtime.encoder import GRAPH
from ..runtime.solver import EXPORT_RECORD
from ..store.files import read_json
from ..usage_error import UsageError
from .model_card import RECORD


CARD, CONFIG, WEIGHTS, INDEX = "README.md", "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("vocab.txt", "merges.txt", "chat_template.jinja", "*.spm", "spiece.model", "sentencepiece.bpe.model"),
)
PUBLISHED = (
    *(CARD, CONFIG, WEIGHTS, RECORD, "NOTICE*", "LICENSE*", EXPORT_RECORD, GRAPH, *TOKENIZER, *FILES),
    *("use_hf_mwp.py", "cut_model.py", "architecture.py", "slicing.py"),
    *(MwpProcessor.file_name, PlausibilityReranker.file_name, DefaultSearch.file_name, TrainingTexts.file_name),
)
_OWN_NAME = re.compile(r'((?:\bmodel=|from_pretrained\()"|hf download )[^"\n]*?(?="| --local-dir)')


def collect_files(folder: Path, target: Path) -> None:
    """
    Copy the files of a model folder to upload: card, configuration, processor, re-ranker, digests of training texts,
    record, weights as one file in half precision, and the code of an encoder. Checkpoints, logs, run options and
    pickles are left out, and weights of an export are not changed.

    Args:
        folder (`Path`), target (`Path`): Folder of the model, and an empty folder.

    Raises:
        UsageError: The configuration or weights are missing or damaged.
    """
    for path in folder.iterdir():
        if path.is_file() and any(fnmatch(path.name, each) for each in PUBLISHED):
            shutil.copy(path, target)
    config = read_json(target / CONFIG)
    if config is None:
        raise UsageError(f"{folder / CONFIG} is missing or damaged. Save the model again.")
    if not (folder / EXPORT_RECORD).exists():
        save_file(_half_weights(folder), target / WEIGHTS, {"format": "pt"})
        if config.get("model_type") == "mwp_student":
            save_student_code(target)


def weight_files(folder: Path) -> list[str]:
    """Return the names of the weight files in a folder: one file, or all shards."""
    index = read_json(folder / INDEX)
    return [WEIGHTS] if index is None else sorted({*index["weight_map"].values()})


def _half_weights(folder: Path) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name in weight_files(folder):
        try:
            tensors |= load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise UsageError(f"{folder / name} is missing or damaged ({error}). Save the model again.") from error
    return {name: value.half() if value.is_floating_point() else value for name, value in tensors.items()}


def name_in_card(text: str, repo_id: str) -> str:
    """Return the card text with `repo_id` as the model name in its examples."""
    head, title, rest = text.partition("\n## How to use\n")
    usage, next_title, rest = rest.partition("\n## ")
    return head + title + _OWN_NAME.sub(rf"\g<1>{repo_id}", usage) + next_title + rest
