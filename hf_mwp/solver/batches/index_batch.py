"""Base class of batches that keep all index tensors in one buffer."""

from typing import Self

import torch


class IndexBatch:
    """Base class of index tensors that are views of one int64 buffer, so that they move to a device in one copy. A
    subclass sets `_lengths`, the length of each tensor by name, and calls `_set_buffer`, which sets the attributes."""

    _lengths: dict[str, int]

    def _set_buffer(self, buffer: torch.Tensor) -> None:
        self._buffer = buffer
        for name, view in zip(self._lengths, buffer.split(list(self._lengths.values())), strict=True):
            setattr(self, name, view)

    @property
    def device(self) -> torch.device:
        return self._buffer.device

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Return the batch on the given device."""
        if self.device == torch.device(device):
            return self
        return self._with(self._buffer.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """Return the batch in pinned memory. `DataLoader` calls this method."""
        return self._with(self._buffer.pin_memory())

    def _with(self, buffer: torch.Tensor) -> Self:
        moved = object.__new__(type(self))
        moved.__dict__.update(self.__dict__)
        moved._set_buffer(buffer)
        return moved
