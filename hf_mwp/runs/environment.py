"""What a run is computed with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from typing import Any


LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "evaluate", "tokenizers", "safetensors", "numpy")


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
