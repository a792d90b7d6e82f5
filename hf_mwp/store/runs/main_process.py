"""Rank and synchronization of processes in a distributed run."""

import gc
import os

from ...usage_error import UsageError


def is_main_process() -> bool:
    """Return whether this process has rank 0, and therefore prints and writes files."""
    return process_place()[0] == 0


def process_place() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, set by `torchrun` or `accelerate launch`."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def wait_for_all() -> None:
    """
    Wait until all processes have called this function. Raises `UsageError` if Accelerate cannot connect the processes.
    """
    processes = process_place()[1]
    if processes > 1:
        import torch
        from accelerate import PartialState

        # On machines without a GPU, Accelerate connects the processes only with `cpu=True`.
        state = PartialState(cpu=not torch.accelerator.is_available())
        if state.num_processes != processes:
            raise UsageError(
                f"{processes} processes were started, but Accelerate found {state.num_processes}. Start them with "
                "`accelerate launch` or `torchrun`."
            )
        state.wait_for_everyone()


def check_one_process(command: str, launches: bool = True) -> None:
    """Raise `UsageError` if there are several processes. With `launches`, the message recommends `--launch`."""
    processes = process_place()[1]
    if processes > 1:
        more = f" To train in several, add --launch 'torchrun --nproc_per_node {processes}'." if launches else ""
        raise UsageError(f"Start `hf-mwp {command}` in one process, not in {processes}.{more}")


def end_process_group() -> None:
    """
    Destroy the process group of distributed training, if it exists. Call this function at the end of a program started
    by `torchrun`: Gloo's threads abort a process that ends while an object, such as a trainer that was not yet garbage
    collected, refers to the group ([pytorch#190489](https://github.com/pytorch/pytorch/issues/190489)).
    """
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()
