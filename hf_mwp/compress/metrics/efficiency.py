"""Functions that measure size and cost of a model: parameters, floating point operations, time and memory."""

import statistics
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one


@checked
def count_parameters(model: nn.Module, trainable_only: bool = False, embeddings: bool = True) -> int:
    """
    Return the number of parameters of a model. Tied parameters count once.

    Args:
        model (`nn.Module`): Any module.
        trainable_only (`bool`, *optional*, defaults to `False`): Whether to leave out frozen parameters.
        embeddings (`bool`, *optional*, defaults to `True`): Whether to count the weights of `nn.Embedding` modules,
            which need memory but no computation, and the table of tokens in the head of a language model. Without
            them, models with tied and with separate tables are comparable.
    """
    ignored = set()
    if not embeddings:
        ignored = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
        if isinstance(model, PreTrainedModel):
            ignored.add(getattr(model.get_output_embeddings(), "weight", None))
    total = 0
    for parameter in set(model.parameters()) - ignored:
        if parameter.requires_grad or not trainable_only:
            total += parameter.numel()
    return total


@checked
def describe_compression(student: nn.Module, teacher: nn.Module) -> str:
    """Return a sentence: the parameters of a student and their share of its teacher's, also without embeddings."""
    sizes = []
    for embeddings in (True, False):
        student_size = count_parameters(student, embeddings=embeddings)
        teacher_size = count_parameters(teacher, embeddings=embeddings)
        share = student_size / max(teacher_size, 1)
        sizes.append(f"{student_size:,} parameters ({share:.0%} of its teacher's)")
    return f"The student has {sizes[0]} and, without embeddings, {sizes[1]}."


@checked
def count_flops(function: Callable, inputs: Mapping | None = None) -> int:
    """
    Count the floating point operations of a call with `torch.utils.flop_counter`. A multiply-add in a matrix product,
    convolution or attention counts as two operations. Elementwise operations are not counted. If the call runs a
    backward pass, it is counted.

    Args:
        function (`Callable` or `nn.Module`): A function, for example a model or `model.solve`.
        inputs (`Mapping`, *optional*): Keyword arguments of the call.
    """
    # Disable fused attention, because the counter has no formula for the fused attention of CPUs.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        function(**(inputs or {}))
    return counter.get_total_flops()


@checked
def peak_memory(function: Callable[[], object]) -> int:
    """
    Return the maximum size in bytes of all tensors that are created during a call and exist at the same time, on any
    device. Parameters, inputs and temporary memory inside an operation are not counted.

    Args:
        function (`Callable`): Function without arguments, for example a training step.
    """
    with _StorageCounter() as counter:
        result = function()
    del result
    return counter.peak


@checked
def compare_latency(
    functions: Mapping[str, Callable[[], object]], repeats: int = 20, warmup: int = 3
) -> dict[str, float]:
    """
    Measure the latency of several functions, which are called in turns so that changes of the machine load affect all
    functions equally. Compare only times of the same call of `compare_latency`.

    Args:
        functions (`Mapping[str, Callable]`): Functions without arguments, by name.
        repeats (`int`, *optional*, defaults to 20), warmup (`int`, *optional*, defaults to 3): Numbers of timed calls
            of each function, and of calls before them.

    Returns:
        `dict[str, float]`: Median time of a call in seconds, by name.
    """
    check_at_least_one({"repeats": repeats}, "repeats")
    times = defaultdict(list)
    for turn in range(warmup + repeats):
        for name, function in functions.items():
            _synchronize()
            start = time.perf_counter()
            function()
            _synchronize()
            if turn >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _synchronize() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


@checked
@torch.inference_mode()
def compare_costs(
    models: Mapping[str, nn.Module], batch_size: int = 1, tokens: int = 32, repeats: int = 30
) -> dict[str, dict[str, float]]:
    """
    Measure size and speed of encoders on the same artificial texts, timed with [`compare_latency`].

    Args:
        models (`Mapping[str, nn.Module]`): Models by name, in evaluation mode, that accept `input_ids`. The decoder of
            an encoder-decoder model receives the same number of tokens.
        batch_size (`int`, *optional*, defaults to 1), tokens (`int`, *optional*, defaults to 32): Number of texts in a
            batch, and of tokens in a text.
        repeats (`int`, *optional*, defaults to 30): Number of timed calls of each model.

    Returns:
        `dict`: For each name a dictionary with `parameters`, `parameters_without_embeddings`, `flops`
        ([`count_flops`]) and `seconds` (median time of a call).
    """
    counts = {"batch_size": batch_size, "tokens": tokens, "repeats": repeats}
    check_at_least_one(counts, *counts)
    calls = {}
    for name, model in models.items():
        ids = torch.ones(batch_size, tokens, dtype=torch.long, device=next(model.parameters()).device)
        calls[name] = partial(model, input_ids=ids, attention_mask=torch.ones_like(ids))
        if model.config.is_encoder_decoder:
            calls[name] = partial(calls[name], decoder_input_ids=ids)
    times = compare_latency(calls, repeats=repeats)
    costs = {}
    for name, model in models.items():
        costs[name] = {
            "parameters": count_parameters(model),
            "parameters_without_embeddings": count_parameters(model, embeddings=False),
            "flops": count_flops(calls[name]),
            "seconds": times[name],
        }
    return costs


class _StorageCounter(TorchDispatchMode):
    """Counter of the bytes of storages that are allocated and not yet freed."""

    def __init__(self):
        super().__init__()
        self.peak = 0
        self._live: dict[int, int] = {}  # bytes by the id of a storage

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        input_ids = set(map(id, _storages((args, kwargs))))
        result = func(*args, **(kwargs or {}))
        for storage in _storages(result):
            if id(storage) not in input_ids and id(storage) not in self._live:
                self._live[id(storage)] = storage.nbytes()
                weakref.finalize(storage, self._live.pop, id(storage), None).atexit = False
        self.peak = max(self.peak, sum(self._live.values()))
        return result


def _storages(values: object) -> Iterator[torch.UntypedStorage]:
    """Yield the storage of each tensor in nested lists and mappings."""
    for value in tree_iter(values):
        if isinstance(value, torch.Tensor):
            yield value.untyped_storage()
