"""Clean-up after distributed training."""

from __future__ import annotations

import gc

import torch


def end_process_group() -> None:
    """
    Destroy the process group of a distributed training, if there is one; call it last in a program that `torchrun`
    starts. Gloo's threads abort a process that ends while something holds the group, such as a trainer that is not
    yet collected ([pytorch#190489](https://github.com/pytorch/pytorch/issues/190489)).
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()
