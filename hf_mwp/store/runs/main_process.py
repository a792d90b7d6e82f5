"""Main process of a distributed training, which prints and writes."""

import os

from ...usage_error import UsageError


def is_main_process() -> bool:
    """Return whether this process prints and writes; `torchrun` and `accelerate launch` set the rank."""
    return int(os.environ.get("RANK", "0")) == 0


def check_one_process(command: str, launches: bool = True) -> None:
    """Raise `UsageError` under `torchrun`; `launches` says that the command can launch stages in several processes."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1:
        more = f" --launch 'torchrun --nproc_per_node {processes}'" if launches else ""
        raise UsageError(f"{command}: start it in one process, not in {processes}: hf-mwp {command} ...{more}")
