"""Functions that keep computations in full precision in mixed-precision training."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def at_least_fp32(tensor: Tensor) -> Tensor:
    """Convert a tensor to fp32; fp64 stays fp64."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def without_autocast(tensor: Tensor) -> AbstractContextManager:
    """Return a context in which matrix products on the tensor's device keep the precision of their inputs."""
    device_type = tensor.device.type
    if torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
