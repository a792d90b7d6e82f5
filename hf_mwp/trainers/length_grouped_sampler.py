"""Sampler of batches of similar lengths, whose order depends on the seed and the epoch only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import Sampler


# Batches whose examples are sorted by length together: more of them leave less padding and less chance.
BATCHES_PER_GROUP = 50


class LengthGroupedSampler(Sampler[int]):
    """
    Orders examples so that a batch has texts of similar length, anew in each epoch: shuffled examples are sorted by
    length in groups of 50 batches, and the batches are shuffled. The batch with the longest text comes first, so that
    one that does not fit into memory is noticed at once; an incomplete one comes last.

    Unlike the sampler of the same name in Transformers, which draws from torch's global generator, it gives the same
    order after a resume and in each process.

    Args:
        lengths (`Sequence[int]`): Length of each example.
        batch_size (`int`): Examples of one optimisation step, over all devices and accumulated batches.
        seed (`int`, *optional*, defaults to 0): Together with the epoch decides the order.
        first_epoch (`Callable[[], int]`, *optional*):
            Returns the epoch until `set_epoch` is called: a resumed loader that skips batches may hide the sampler
            from `set_epoch` for one epoch.
    """

    def __init__(
        self, lengths: Sequence[int], batch_size: int, seed: int = 0, first_epoch: Callable[[], int] | None = None
    ) -> None:
        self.lengths, self.batch_size, self.seed = list(lengths), batch_size, seed
        self.first_epoch = first_epoch or (lambda: 0)
        self.epoch: int | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Called by the training loop before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        epoch = self.first_epoch() if self.epoch is None else self.epoch
        generator = torch.Generator().manual_seed(self.seed + epoch)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        size = self.batch_size * BATCHES_PER_GROUP
        batches = []
        for start in range(0, len(order), size):
            group = sorted(order[start : start + size], key=lambda index: -self.lengths[index])
            batches += [group[place : place + self.batch_size] for place in range(0, len(group), self.batch_size)]
        last = batches.pop() if batches and len(batches[-1]) < self.batch_size else []
        batches = [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]
        if batches:
            longest = max(range(len(batches)), key=lambda batch: self.lengths[batches[batch][0]])
            batches.insert(0, batches.pop(longest))
        return iter([index for batch in [*batches, last] for index in batch])
