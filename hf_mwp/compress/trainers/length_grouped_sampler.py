"""Sampler that groups examples of similar length, in an order that depends only on seed and epoch."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import torch
from torch.utils.data import Sampler


# Number of batches that are sorted by length together: more batches mean less padding and less randomness.
BATCHES_PER_GROUP = 50


class LengthGroupedSampler(Sampler[int]):
    """
    Sampler that puts texts of similar length into a batch. In each epoch, shuffled examples are sorted by length in
    groups of 50 batches, and the batches are shuffled. The batch with the longest text comes first, so that running
    out of memory shows at once; an incomplete batch comes last. The order is the same after a resume and in each
    process, unlike that of the sampler of the same name in Transformers.

    `batch_size` is that of an optimisation step, over all devices and accumulated batches. `first_epoch` returns the
    epoch until `set_epoch` is called: a resumed loader that skips batches may not pass the call on for one epoch.
    """

    def __init__(
        self, lengths: Sequence[int], batch_size: int, seed: int = 0, first_epoch: Callable[[], int] | None = None
    ) -> None:
        self.lengths = list(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.first_epoch = first_epoch
        self.epoch: int | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the training loop calls this method before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        epoch = self.epoch
        if epoch is None:
            epoch = self.first_epoch() if self.first_epoch else 0
        generator = torch.Generator().manual_seed(self.seed + epoch)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        size = self.batch_size * BATCHES_PER_GROUP
        batches = []
        for start in range(0, len(order), size):
            group = sorted(order[start : start + size], key=lambda index: -self.lengths[index])
            while group:
                batches.append(group[: self.batch_size])
                group = group[self.batch_size :]
        incomplete = []
        if batches and len(batches[-1]) < self.batch_size:
            incomplete = batches.pop()
        batches = [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]
        if batches:
            # The first text of a batch is its longest one.
            longest = max(batches, key=lambda batch: self.lengths[batch[0]])
            batches.remove(longest)
            batches.insert(0, longest)
        return chain(*batches, incomplete)
