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
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from .console import is_main_process
from .output_folder import check_output_folder


LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tokenizers", "safetensors", "numpy")


class RunFolder:
    """
    Writes the record of a run: `run_config.yaml` (what `--config` reads again), `run.json` (command, seed, library
    versions, git revision, machine, times), `metrics.json`, `run.log`.

    Only the first process of a distributed run writes.

    Args:
        path (`str` or `Path`): The folder; made if it is not there.
        command (`str`): The subcommand.
        values (`Mapping[str, Any]`): Its resolved options.

    Raises:
        CommandError: the path is a file.
    """

    def __init__(self, path: str | Path, command: str, values: Mapping[str, Any]):
        self.path = Path(path)
        self.writes = is_main_process()
        self._started = time.time()
        self._cpu_started = time.process_time()
        check_output_folder(self.path)
        self.record = {
            "command": f"hf-mwp {command}",
            "arguments": sys.argv[1:],
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "seed": values.get("seed"),
            "data_seed": values.get("data_seed"),
            "git_revision": git_revision(),
            "python": platform.python_version(),
            "libraries": library_versions(),
            "machine": machine(),
        }
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            text = yaml.safe_dump({name: _plain(value) for name, value in values.items()}, allow_unicode=True)
            (self.path / "run_config.yaml").write_text(text, encoding="utf-8")
            self.write_json("run.json", self.record)
            self._log = logging.FileHandler(self.path / "run.log", encoding="utf-8")
            self._log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).addHandler(self._log)
            logging.getLogger("hf_mwp").setLevel(logging.INFO)

    def log(self, message: str) -> None:
        """Adds a line to `run.log`."""
        logging.getLogger("hf_mwp.cli").info(message)

    def write_json(self, name: str, content: Any) -> None:
        """Writes a JSON file to the folder."""
        if self.writes:
            text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
            (self.path / name).write_text(text + "\n", encoding="utf-8")

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Writes `metrics.json`, adds the run's times to `run.json`, and closes the log."""
        self.record["wall_seconds"] = round(time.time() - self._started, 1)
        self.record["cpu_seconds"] = round(time.process_time() - self._cpu_started, 1)
        self.write_json("metrics.json", metrics)
        self.write_json("run.json", self.record)
        self.close()

    def close(self) -> None:
        """Closes the log; more than once does no harm."""
        if self.writes:
            for name in ("transformers", "hf_mwp"):
                logging.getLogger(name).removeHandler(self._log)
            self._log.close()


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


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
