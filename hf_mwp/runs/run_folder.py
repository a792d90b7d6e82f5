"""What a run leaves beside its model: resolved options, environment, figures, log."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from ..store.disk_full_error import means_full_disk
from ..store.files import write_whole
from ..usage_error import UsageError
from .output_folder import OutputFolder


CONFIG, RECORD = "run_config.yaml", "run.json"
LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tokenizers", "safetensors", "numpy")


class RunFolder(OutputFolder):
    """
    Writes the record of a run: `run_config.yaml` (what `--config` reads again), `run.json` (command, seed, library
    versions, git revision, machine, times, and the same of earlier starts), `metrics.json`, `run.log`.

    Only the first process of a distributed run writes.

    Args:
        path (`str` or `Path`): The folder; made if it is not there.
        command (`str`): The subcommand.
        values (`Mapping[str, Any]`): Its resolved options.
        begin (`bool`, *optional*, defaults to `True`):
            Begin the record at once; otherwise [`begin`] does, when it is sure that the run will be one.

    Raises:
        UsageError: the path is a file, or another run writes to the folder.
    """

    def __init__(self, path: str | Path, command: str, values: Mapping[str, Any], begin: bool = True):
        super().__init__(path)
        self.command = f"hf-mwp {command}"
        self.values = {name: plain(value) for name, value in values.items()}
        self.record: dict[str, Any] = {}
        self._log: logging.Handler | None = None
        self._started = time.time()
        self._cpu_started = time.process_time()
        if begin:
            self.begin()

    def begin(self, checkpoint: str | None = None, changes: Mapping[str, tuple] | None = None) -> None:
        """
        Begins the record.

        Args:
            checkpoint (`str`, *optional*): Checkpoint that the run goes on from; earlier starts stay in the record.
            changes (`Mapping[str, tuple]`, *optional*): Options that have changed since: what they were and are.
        """
        earlier = [] if checkpoint is None else self._earlier_starts()
        self.record = {
            "command": self.command,
            "arguments": sys.argv[1:],
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "seed": self.values.get("seed"),
            "data_seed": self.values.get("data_seed"),
            "git_revision": git_revision(),
            "python": platform.python_version(),
            "libraries": library_versions(),
            "machine": machine(),
        }
        if checkpoint is not None:
            self.record |= {"resumed_from": checkpoint, "changes": dict(changes or {}), "earlier_starts": earlier}
        if self.writes:
            text = yaml.safe_dump(self.values, allow_unicode=True)
            write_whole(self.path / CONFIG, text)
            self.write_json(RECORD, self.record)
            self._log = _RunLog(self.path / "run.log", encoding="utf-8")
            self._log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).addHandler(self._log)
            logging.getLogger("hf_mwp").setLevel(logging.INFO)

    def check_record(self) -> None:
        """Raises `UsageError` if the folder holds the record of another command."""
        other = last_record(self.path).get("command")
        if other is not None and other != self.command:
            raise UsageError(
                f"{self.path} has the record of `{other}`, which `{self.command}` would replace: choose another "
                "--output_dir."
            )

    def log(self, message: str) -> None:
        """Adds a line to `run.log`."""
        logging.getLogger("hf_mwp.cli").info(message)

    def write_json(self, name: str, content: Any) -> None:
        """Writes a JSON file to the folder."""
        if self.writes:
            text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
            write_whole(self.path / name, text + "\n")

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Writes `metrics.json`, adds the run's times to `run.json`, and closes the log."""
        self.record["wall_seconds"] = round(time.time() - self._started, 1)
        self.record["cpu_seconds"] = round(time.process_time() - self._cpu_started, 1)
        self.write_json("metrics.json", metrics)
        self.write_json(RECORD, self.record)
        self.close()

    def close(self) -> None:
        """Closes the log, and lets others write to the folder; more than once does no harm."""
        if self._log is not None:
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).removeHandler(self._log)
            # What a full disk has no room for is lost.
            with suppress(OSError):
                self._log.close()
        super().close()

    def _earlier_starts(self) -> list[dict[str, Any]]:
        last = last_record(self.path)
        earlier = last.pop("earlier_starts", [])
        return [*earlier, last] if last else earlier


class _RunLog(logging.FileHandler):
    """A log whose lines are lost on a full disk, instead of a traceback each."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not means_full_disk(sys.exception()):
            super().handleError(record)


def last_record(folder: Path) -> dict[str, Any]:
    """What the last run wrote down in a folder; empty if there is nothing to be read."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def git_revision() -> str | None:
    """Commit of the working directory, with `-dirty` where files are changed; `None` outside a repository."""
    commands = (["git", "rev-parse", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"])
    try:
        revision, changes = (
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{revision}-dirty" if changes else revision


def library_versions() -> dict[str, str]:
    """Versions of this package and the libraries it computes with; those not installed are left out."""
    from .. import __version__

    versions = {"hf_mwp": __version__}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def machine() -> dict[str, Any]:
    """Processor, cores, threads and accelerator of this machine."""
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
        "accelerator": device,
    }


def plain(value: Any) -> Any:
    """An option as YAML has it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
