"""Clean-up after distributed training."""

from __future__ import annotations

import gc

import torch


def end_process_group() -> None:
    """
    Destroy the process group of a distributed training, if there is one; call it last in a program that `torchrun`
    starts.

    Gloo's threads live as long as anything holds the group, and abort a process that ends before them
    ([pytorch#190489](https://github.com/pytorch/pytorch/issues/190489)). A trainer that nobody refers to holds
    it through its wrapped model until the garbage collector has found the trainer's reference cycles.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()
