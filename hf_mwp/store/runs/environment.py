"""Description of a run's environment: code revision, library versions and machine."""

import importlib.metadata
import os
import platform
import subprocess
import time
from contextlib import suppress
from typing import Any


LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tokenizers", "safetensors", "numpy")


def git_revision() -> str | None:
    """Return the current Git commit, with `-dirty` if tracked files are changed, or `None` outside a repository."""
    commands = (["git", "rev-parse", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"])
    try:
        revision, changes = (
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{revision}-dirty" if changes else revision


def describe_environment() -> dict[str, Any]:
    """Return the time, the Git revision, the versions of this package and its libraries, and the machine."""
    import torch

    from ... import __version__

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
