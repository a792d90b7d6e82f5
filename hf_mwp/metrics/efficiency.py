"""Size and cost of a model: parameters, floating point operations, memory."""

import weakref
from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode


def count_parameters(model: nn.Module, trainable_only: bool = False, embeddings: bool = True) -> int:
    """
    Number of parameters of a model; a tied parameter counts once.

    Args:
        model (`nn.Module`): Any module.
        trainable_only (`bool`, *optional*, defaults to `False`): Leave out frozen parameters.
        embeddings (`bool`, *optional*, defaults to `True`): `False` leaves out the tables of `nn.Embedding` modules,
            which cost memory but no computation.
    """
    left_out = set()
    if not embeddings:
        left_out = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return sum(
        parameter.numel()
        for parameter in model.parameters()
        if id(parameter) not in left_out and (parameter.requires_grad or not trainable_only)
    )


def count_flops(function: Callable, inputs: Mapping | None = None) -> int:
    """
    Floating point operations of a call as torch's own counter sees them: two per multiply-add of matrix products,
    convolutions and attention; elementwise operations are free. The backward pass counts if the call runs one.

    Args:
        function (`Callable` or `nn.Module`): What to call, for example a model or `model.solve`.
        inputs (`Mapping`, *optional*): Keyword arguments of the call.

    Examples:

    ```python
    >>> count_flops(nn.Linear(8, 4), {"input": torch.ones(2, 8)})
    128
    ```
    """
    # The counter knows no formula for the fused attention of CPUs and would count it as nothing.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        function(**(inputs or {}))
    return counter.get_total_flops()


def peak_memory(function: Callable[[], object]) -> int:
    """
    Largest number of bytes of tensors, made during a call, that live at the same time.

    Counted from the tensors themselves, on any device, so the figure is the same on each run and machine; what an
    operation uses internally and gives back before it returns is not seen, nor are parameters and inputs made before.

    Args:
        function (`Callable`): Called without arguments, for example a training step.
    """
    with _StorageCounter() as counter:
        result = function()
    del result
    return counter.peak


class _StorageCounter(TorchDispatchMode):
    """Adds up the bytes of new storages and takes them off again when they are freed."""

    def __init__(self):
        super().__init__()
        self.live = self.peak = 0
        self._known = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {id(t.untyped_storage()) for t in tree_iter((args, kwargs)) if isinstance(t, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage(), given)
        return result

    def _add(self, storage, given) -> None:
        if id(storage) in given or storage in self._known:
            return
        size = storage.nbytes()
        self._known.add(storage)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, size).atexit = False

    def _free(self, size: int) -> None:
        self.live -= size
