"""Rank and synchronization of processes in a distributed run."""

import gc
import os
from collections.abc import Callable
from typing import Any

from .usage_error import UsageError


def is_main_process() -> bool:
    """Return whether this process has rank 0, and therefore prints and writes files."""
    rank, _ = rank_and_world_size()
    return rank == 0


def rank_and_world_size() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, set by `torchrun` or `accelerate launch`."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def wait_for_all() -> None:
    """Wait until all processes have called this function. Raises `UsageError` if Accelerate cannot connect them."""
    _, num_processes = rank_and_world_size()
    if num_processes > 1:
        import torch
        from accelerate import PartialState

        # On machines without a GPU, Accelerate connects the processes only with `cpu=True`.
        state = PartialState(cpu=not torch.accelerator.is_available())
        if state.num_processes != num_processes:
            fault = f"{num_processes} processes were started, but Accelerate found {state.num_processes}."
            raise UsageError(f"{fault} Start them with `accelerate launch` or `torchrun`.")
        state.wait_for_everyone()


def share_rows(make: Callable[[list], list], rows: list) -> list:
    """Return `make(rows)`, a list with a result for each row, of which each process computes a part. All processes
    must call this function, and receive all results in the order of the rows."""
    _, num_processes = rank_and_world_size()
    if num_processes == 1:
        return make(rows)
    from accelerate import PartialState
    from accelerate.utils import gather_object

    wait_for_all()
    with PartialState().split_between_processes(rows) as process_rows:
        results = make(process_rows) if process_rows else []
        return gather_object(results)


def check_one_process(command: str, launches: bool = True) -> None:
    """Raise `UsageError` if there are several processes. With `launches`, the message recommends `--launch`."""
    _, num_processes = rank_and_world_size()
    if num_processes > 1:
        message = f"Start `hf-mwp {command}` in one process, not in {num_processes}."
        if launches:
            message += f" To train in several, add --launch 'torchrun --nproc_per_node {num_processes}'."
        raise UsageError(message)


def shards_weights(args: Any) -> bool:
    """Return whether a training with these `TrainingArguments` shards weights over processes (FSDP, ZeRO-3)."""
    from accelerate.utils import parse_flag_from_env
    from transformers.integrations import is_deepspeed_zero3_enabled

    # `accelerate launch` sets FSDP only in the environment. A single process does not shard weights.
    has_fsdp = args.world_size > 1 and parse_flag_from_env("ACCELERATE_USE_FSDP")
    return bool(getattr(args, "fsdp", None) or has_fsdp or is_deepspeed_zero3_enabled())


def end_process_group() -> None:
    """Destroy the process group of distributed training, if it exists. Programs started by `torchrun` call this
    function at their end: Gloo's threads abort a process that ends while an object, such as a trainer, still refers to
    the group ([pytorch#190489](https://github.com/pytorch/pytorch/issues/190489))."""
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()


def ranks_of_folder(args: Any) -> range:
    """Return the ranks of the processes that write checkpoints to the same folder as this process. `args` are
    `TrainingArguments`."""
    if not args.save_on_each_node:
        return range(args.world_size)
    first = args.process_index - args.local_process_index
    return range(first, first + int(os.environ.get("LOCAL_WORLD_SIZE", args.world_size)))
