"""Processes that train or solve together: which one this is, and which one prints and writes."""

import gc
import os

from ...usage_error import UsageError


def is_main_process() -> bool:
    """Return whether this process prints and writes; `torchrun` and `accelerate launch` set the rank."""
    return process_place()[0] == 0


def process_place() -> tuple[int, int]:
    """Return the rank of this process and the number of processes."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def wait_for_all() -> None:
    """Wait until all processes are here, in the group that Accelerate opens; `UsageError` if it opens none."""
    processes = process_place()[1]
    if processes > 1:
        import torch
        from accelerate import PartialState

        # Without `cpu` each process would be alone where there is no GPU, and wait for nobody.
        state = PartialState(cpu=not torch.accelerator.is_available())
        if state.num_processes != processes:
            raise UsageError(
                f"{processes} processes were started, and Accelerate sees {state.num_processes}: start them with "
                "`accelerate launch` or `torchrun`."
            )
        state.wait_for_everyone()


def check_one_process(command: str, launches: bool = True) -> None:
    """Raise `UsageError` under `torchrun`; `launches` says that the command can launch stages in several processes."""
    processes = process_place()[1]
    if processes > 1:
        more = f" --launch 'torchrun --nproc_per_node {processes}'" if launches else ""
        raise UsageError(f"{command}: start it in one process, not in {processes}: hf-mwp {command} ...{more}")


def end_process_group() -> None:
    """
    Destroy the process group of a distributed training, if there is one; call it last in a program that `torchrun`
    starts. Gloo's threads abort a process that ends while something holds the group, such as a trainer that is not
    yet collected ([pytorch#190489](https://github.com/pytorch/pytorch/issues/190489)).
    """
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()
