"""Selection of the files of a model folder to upload to the Hub, with the weights in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_texts import TrainingTexts
from ..models.mwp_student import save_student_code
from ..models.mwp_student.remote_code import FILES
from ..plausibility import PlausibilityReranker
from ..runtime.default_search import DefaultSearch
from ..usage_error import UsageError
from .model_card import RECORD


CARD, CONFIG, WEIGHTS, INDEX = "README.md", "config.json", "model.safetensors", "model.safetensors.index.json"
# Record and graph of an exported solver, whose weights are already stored in the format of the runtime.
EXPORT = ("export.json", "encoder.onnx")
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("vocab.txt", "merges.txt", "chat_template.jinja", "*.spm", "spiece.model", "sentencepiece.bpe.model"),
)
PUBLISHED = (
    *(CARD, CONFIG, WEIGHTS, RECORD, "NOTICE*", "LICENSE*", *EXPORT, *TOKENIZER, *FILES, "use_hf_mwp.py"),
    *(MwpProcessor.file_name, PlausibilityReranker.file_name, DefaultSearch.file_name, TrainingTexts.file_name),
)
_OWN_NAME = re.compile(r'((?:\bmodel=|from_pretrained\()")[^"]*(?=")')


@dataclass(frozen=True)
class PublishedFiles:
    """
    Files to upload to a repository.

    Args:
        files (`Mapping[str, Path]`): Local path of each file, by its name in the repository.
        left_out (`tuple[str, ...]`, *optional*): Files and folders in the model's folder that are not uploaded.
    """

    files: Mapping[str, Path]
    left_out: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each file in bytes, sorted by name."""
        return {name: self.files[name].stat().st_size for name in sorted(self.files)}


def collect_files(
    folder: Path, workspace: Path, repo_id: str, made: Mapping[str, str] | None = None
) -> PublishedFiles:
    """
    Collect the files of a folder to upload: card, configuration, weights, processor, re-ranker, digests of training
    texts, record, and the code of an encoder. Checkpoints, logs, run options and pickles are left out. Weights are
    converted to one file in half precision, except those of an export, whose format the runtime requires.

    Args:
        folder (`Path`): Folder of the model.
        workspace (`Path`): Empty folder for generated files.
        repo_id (`str`): Repository from which the card's examples load the model.
        made (`Mapping[str, str]`, *optional*): Texts of generated files, by name. They replace files in the folder.

    Raises:
        UsageError: A required file is missing or damaged.
    """
    found = {path.name: path for path in folder.iterdir() if path.is_file()}
    files = {name: path for name, path in found.items() if any(fnmatch(name, each) for each in PUBLISHED)}
    for name, text in (made or {}).items():
        files[name] = workspace / name
        files[name].write_text(text, "utf-8")
    if missing := [name for name in (CONFIG, CARD, RECORD) if name not in files]:
        raise UsageError(
            f"{folder} cannot be published because {missing[0]} is missing. Create a complete folder with `hf-mwp "
            f"card --model {folder} --output_dir NEW`."
        )
    (workspace / CARD).write_text(name_in_card(files[CARD].read_text("utf-8"), repo_id), "utf-8")
    files[CARD] = workspace / CARD
    if EXPORT[0] not in files:
        files[WEIGHTS] = one_file(folder, workspace / WEIGHTS)
        _add_code(files, workspace)
    shards = {each.name for each in weight_files(folder)}
    left = sorted(path.name for path in folder.iterdir() if path.name not in {*files, *shards, INDEX})
    return PublishedFiles(files, tuple(left))


def name_in_card(text: str, repo_id: str) -> str:
    """Return the card text with `repo_id` as the model name in its examples."""
    head, title, rest = text.partition("\n## How to use\n")
    usage, next_title, rest = rest.partition("\n## ")
    return head + title + _OWN_NAME.sub(rf"\g<1>{repo_id}", usage) + next_title + rest


def weight_files(folder: Path) -> list[Path]:
    """
    Return the paths of the weight files in a folder: one file, or all shards. Raises `UsageError` if a file is missing
    or the index is damaged.
    """
    files = [folder / WEIGHTS]
    if not files[0].is_file() and (folder / INDEX).is_file():
        try:
            names = json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise UsageError(f"{folder / INDEX} is damaged ({error}). Save the model again.") from error
        files = [folder / name for name in sorted({*names})]
    if missing := [path.name for path in files if not path.is_file()]:
        raise UsageError(f"{missing[0]} is missing in {folder}. Save the model again with `save_pretrained`.")
    return files


def one_file(folder: Path, target: Path) -> Path:
    """Return the weight file if there is only one and it is in half precision; otherwise write it to `target`."""
    files, tensors, is_half = weight_files(folder), {}, True
    for path in files:
        try:
            with safe_open(path, "pt") as shard:
                for name in shard.keys():
                    tensor = shard.get_tensor(name)
                    is_half &= not tensor.is_floating_point() or tensor.itemsize == 2
                    tensors[name] = tensor.half() if tensor.is_floating_point() else tensor
        except SafetensorError as error:
            raise UsageError(f"{path} is damaged ({error}). Save the model again.") from error
    if len(files) == 1 and is_half:
        return files[0]
    save_file(tensors, target, {"format": "pt"})
    return target


def _add_code(files: dict[str, Path], workspace: Path) -> None:
    """Add the model code of a student if it is missing, and refer to the code in the configuration."""
    config = files[CONFIG].read_text("utf-8")
    if json.loads(config).get("model_type") == "mwp_student" and not {*FILES} <= files.keys():
        (workspace / CONFIG).write_text(config, "utf-8")
        save_student_code(workspace)
        files |= {name: workspace / name for name in (CONFIG, *FILES)}
