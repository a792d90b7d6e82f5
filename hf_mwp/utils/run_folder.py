"""Output folder of a run, with options, environment, metrics and log."""

import importlib.metadata
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from .files import content_digest, find_names, read_json, write_atomically, write_json
from .main_process import is_main_process
from .replacement import UNFINISHED, finish_replacement, replacing_files
from .usage_error import UsageError
from .version import __version__


CONFIG = "run_config.yaml"
RECORD = "run.json"
LOCK = "run.lock"
RECORDS = (CONFIG, RECORD, "data.json", "metrics.json", "run.log", "learning_curve.png")
# Digests of training texts, which are also written to the folders of pseudo-labels.
TEXTS = "training_texts.safetensors"
WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")
MODEL_FILES = ("config.json", *WEIGHTS)
SHARDS = "model-*-of-*.safetensors"
# Files beside the weights that are valid only for these weights, such as the re-ranker and the record of the card.
MODEL_SPECIFIC_FILES = (
    "record.json",
    "plausibility.json",
    "generation_config.json",
    "export.json",
    "encoder.onnx",
    "model.safetensors.index.json",
)
# Files of a model that must not stay beside the weights of another model.
OLD_MODEL = (*MODEL_SPECIFIC_FILES, SHARDS, TEXTS)
# Options that are written to no file.
SECRETS = ("hub_token", "llm_api_key")
START_OPTIONS = ("resume", "overwrite", "resume_from_checkpoint", *SECRETS)
LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tokenizers", "safetensors", "numpy")


class RunFolder(AbstractContextManager):
    """Output folder of a command, locked for one run at a time until the context ends. Only the main process of a
    distributed run holds the lock. A new folder is removed if it stays empty.

    [`~RunFolder.begin`] and [`~RunFolder.finish`] write the record of a run of `command` with the resolved options
    `values`: `run_config.yaml` (options, can be passed as `--config`), `run.json` (command, seed, library versions,
    Git revision, machine, durations, and the same of earlier starts), `metrics.json` and `run.log`. Raises
    `UsageError` if another run writes to the folder, or [`check_output_folder`] rejects the folder.
    """

    def __init__(
        self,
        path: str | Path,
        command: str | None = None,
        values: Mapping[str, Any] | None = None,
        for_model: bool = False,
    ):
        self.path = Path(path)
        self.writes = is_main_process()
        check_output_folder(self.path, for_model)
        self._is_new = not self.path.exists()
        self._lock = FileLock(self.path / LOCK)
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=0)
            except Timeout as error:
                raise UsageError(f"Another run writes to {self.path}. Wait for its end.") from error
            finish_replacement(self.path)
        self.command = f"hf-mwp {command}"
        # Options that start a run would start the next run of the recorded `run_config.yaml`, too.
        values = values or {}
        self.values = {name: plain(value) for name, value in values.items() if name not in START_OPTIONS}
        self.arguments = sys.argv[1:]
        for name in SECRETS:
            for secret in (name, name.replace("_", "-"), values.get(name)):
                if secret:
                    self.arguments = [argument for argument in self.arguments if secret not in argument]
        self.record: dict[str, Any] = {}
        self._log: logging.Handler | None = None
        self._started = time.time()
        self._cpu_started = time.process_time()

    def __exit__(self, *error) -> None:
        self.close()

    def begin(self, checkpoint: str | None = None, changes: Mapping[str, tuple] | None = None) -> None:
        """Write the first record. When resuming from a `checkpoint`, it includes earlier starts and `changes`."""
        self.record = {
            "command": self.command,
            "arguments": self.arguments,
            "seed": self.values.get("seed"),
            "data_seed": self.values.get("data_seed"),
            **describe_environment(),
        }
        if checkpoint is not None:
            record = last_record(self.path)
            earlier_starts = record.pop("earlier_starts", [])
            if record:
                earlier_starts.append(record)
            self.record["resumed_from"] = checkpoint
            self.record["changes"] = dict(changes or {})
            self.record["earlier_starts"] = earlier_starts
        if self.writes:
            write_atomically(self.path / CONFIG, yaml.safe_dump(self.values, allow_unicode=True))
            self.write_json(RECORD, self.record)
            self._log = logging.FileHandler(self.path / "run.log", encoding="utf-8")
            self._log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).addHandler(self._log)
            logging.getLogger("hf_mwp").setLevel(logging.INFO)

    @property
    def is_unfinished(self) -> bool:
        """Return whether the folder contains the record of a run that was interrupted."""
        record = last_record(self.path)
        return bool(record) and "wall_seconds" not in record

    def check_unused(self, overwrite: bool, files: tuple[str, ...] = MODEL_FILES) -> None:
        """Raise `UsageError` if files with these patterns exist and `overwrite` is false."""
        names = find_names(self.path, files)
        if names and not overwrite:
            fault = f"{self.path} already contains results of an earlier run ({', '.join(names[:2])})."
            raise UsageError(f"{fault} Pass --overwrite, or choose another --output_dir.")

    @contextmanager
    def replacing_model(self, outdated: Sequence[str] | None = None) -> Iterator[Path]:
        """Yield an empty folder for the files of a new model. When the context ends, they replace those of the old
        model, and old files with the names `outdated` are deleted: by default those that belong to the old weights,
        unless the new weights are the same. See [`replacing_files`]. Only the main process moves files."""
        if not self.writes:
            yield self.path / UNFINISHED
            return

        def find_outdated(unfinished: Path) -> Sequence[str]:
            if outdated is not None:
                return outdated
            has_same_weights = _weights_of(unfinished) == _weights_of(self.path)
            return () if has_same_weights else OLD_MODEL

        with replacing_files(self.path, find_outdated) as unfinished:
            yield unfinished

    def check_record(self) -> None:
        """Raise `UsageError` if the folder contains the record of a different command."""
        last_command = last_record(self.path).get("command")
        if last_command is not None and last_command != self.command:
            fault = f"{self.path} contains the record of `{last_command}`, which `{self.command}` would replace."
            raise UsageError(f"{fault} Choose another --output_dir.")

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file to the folder, only in the main process."""
        if self.writes:
            write_json(self.path / name, content)

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Write `metrics.json`, add the run's durations to `run.json`, and close the folder."""
        self.record["wall_seconds"] = round(time.time() - self._started, 1)
        self.record["cpu_seconds"] = round(time.process_time() - self._cpu_started, 1)
        self.write_json("metrics.json", metrics)
        self.write_json(RECORD, self.record)
        self.close()

    def close(self) -> None:
        """Close the log and release the lock; may be called more than once."""
        if self._log is not None:
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).removeHandler(self._log)
            self._log.close()
        if not self._lock.is_locked:
            return
        # Delete the file before another run can acquire the lock. Windows deletes the file itself.
        with suppress(OSError):
            (self.path / LOCK).unlink()
        self._lock.release()
        if self._is_new and not any(self.path.iterdir()):
            self.path.rmdir()


def _weights_of(folder: Path) -> dict[str, str]:
    """Return the digests of the weight files in a folder by their names."""
    files = [path for path in folder.glob("*.safetensors") if path.name != TEXTS]
    return {path.name: content_digest(path) for path in files}


def check_output_folder(path: str | Path, for_model: bool = False) -> None:
    """Raise `UsageError` if the folder or a parent is a file, or if the folder contains a model. Commands that write
    models pass `for_model`, which skips the check for models, and call [`RunFolder.check_unused`]."""
    folder = Path(path)
    for existing in filter(Path.exists, (folder, *folder.parents)):
        if not existing.is_dir():
            raise UsageError(f"{existing} is a file. Choose another output folder.")
    weights = set(find_names(folder, WEIGHTS)) - {TEXTS}
    if weights and not for_model:
        raise UsageError(f"{path} contains a model ({min(weights)}). Choose another output folder.")


def describe_contents(path: Path, *made: str) -> str:
    """Return a description of a run's folder that lists the results `made` and the existing records."""
    records = [name for name in RECORDS if (path / name).is_file()]
    return f"{path} has {', '.join([*made, *records])}"


def last_record(folder: Path) -> dict[str, Any]:
    """Return the record of the last run in a folder, or an empty dictionary if it cannot be read."""
    return read_json(folder / RECORD) or {}


def last_options(folder: Path) -> dict[str, Any]:
    """Return the options of the last run in a folder, or an empty dictionary if they were not recorded."""
    return plain(read_mapping(folder / CONFIG, missing={}))


def read_mapping(path: Path, missing: Mapping | None = None) -> Mapping[str, Any]:
    """Read the mapping in a JSON or YAML file; if the file does not exist, return `missing` unless it is `None`."""
    if missing is not None and not path.exists():
        return missing
    file_format = "JSON" if path.suffix == ".json" else "YAML"
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if file_format == "JSON" else yaml.safe_load(text)
        if not isinstance(content, Mapping):
            raise ValueError(f"expected a mapping, got {content!r}")
    except (OSError, ValueError, yaml.YAMLError) as error:
        fault = f"{path} cannot be read as {file_format}: {error}"
        raise UsageError(f"{fault}. Pass the output folder of a run.") from error
    return content


def plain(value: Any) -> Any:
    """Convert an option value to plain YAML types."""
    if isinstance(value, Enum):
        return value.value
    # Some options of `TrainingArguments` are objects that can be created from a mapping.
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def git_revision() -> str | None:
    """Return the current Git commit, with `-dirty` if tracked files are changed, or `None` outside a repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def describe_environment() -> dict[str, Any]:
    """Return the time, the Git revision, the versions of this package and its libraries, and the machine."""
    import torch

    versions = {"hf_mwp": __version__}
    for name in LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "git_revision": git_revision(),
        "python": platform.python_version(),
        "libraries": versions,
        "machine": {
            "platform": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
            "world_size": int(os.environ.get("WORLD_SIZE", "1")),
            "accelerator": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        },
    }
