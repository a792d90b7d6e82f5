"""Which of the processes that train together prints and writes."""

from __future__ import annotations

import os


def is_main_process() -> bool:
    """Whether this process is the one that prints and writes; `torchrun` and `accelerate launch` set the rank."""
    return int(os.environ.get("RANK", "0")) == 0
