"""Checks that a teacher's outputs can be cached, before the cache is computed."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...masks import label_mask, read_mask
from .output_layout import FORBIDDEN, OutputLayout


OFF = "set `cache_teacher_outputs=False`"

# Largest relative distance that counts as rounding. That of fp16 storage is 3e-4; a teacher in bf16 gives 1e-2 when a
# row stands in another batch. Dropout, or padding that is attended to, gives tens of per cent. A row whose numbers are
# smaller than those of others, as the one number of a regression may be, is held against these.
TOLERANCE = 2e-2


@contextmanager
def random_state_kept():
    """Whatever is drawn inside, the generators of torch, numpy and Python go on as if it had not been."""
    states = random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


def check_evaluating(teacher: nn.Module) -> None:
    """Raise `ValueError` if a part of the teacher is in training mode, so that its dropout is active."""
    training = [name or type(teacher).__name__ for name, module in teacher.named_modules() if module.training]
    if training:
        raise ValueError(
            f"The teacher is in training mode ({', '.join(training[:3])}): with dropout it says something else each "
            f"time, so its outputs cannot be cached. Call `teacher.eval()`, or {OFF}."
        )


def check_repeatable(
    first_keys: Sequence[bytes],
    second_keys: Sequence[bytes],
    first_batch: Mapping[str, Any],
    second_batch: Mapping[str, Any],
) -> None:
    """Raise `ValueError` unless reading and collating the same rows twice gives equal batches."""
    if list(first_keys) != list(second_keys):
        raise ValueError(
            "The data set gives other rows when it is read again (a random transform?): the teacher's outputs for "
            f"them cannot be cached. Apply the transform once, beforehand (`dataset.map`), or {OFF}."
        )
    for name, value in first_batch.items():
        if isinstance(value, Tensor) and not torch.equal(value, second_batch[name]):
            raise ValueError(
                f"The collator makes another {name!r} of the same rows each time, so the teacher's outputs cannot be "
                "cached. Mask tokens once, beforehand, and save the result in the rows (`dataset.map` with the "
                f"masking collator), or {OFF}."
            )


def check_teacher(
    make_layout: Callable[[Any], OutputLayout],
    ask: Callable[[Mapping[str, Any]], Any],
    collate: Callable[[Sequence[int]], Mapping[str, Any]],
    rows: Sequence[int],
) -> tuple[OutputLayout, list[int]]:
    """
    Run the teacher twice on some rows, longest first, and once on the last of them alone, and compare its outputs with
    each other and with what the cache would read back. Return the layout that `make_layout` gives for the output, and
    the bytes that each row needs. Raise `ValueError` if outputs differ.
    """
    batch, alone = collate(rows), collate(rows[-1:])
    output = ask(batch)
    layout = make_layout(output)
    packed = layout.pack(output, batch)
    compare(layout, output, ask(batch), batch, "something else when it is asked again (is dropout active?)")
    restored = restore(layout, packed, batch)
    compare(layout, output, restored, batch, "something that does not survive being cached")
    compare(
        layout,
        ask(alone),
        restore(layout, packed[-1:], alone),
        alone,
        "something else about a row beside longer ones (is there no attention mask for the padding?)",
        {name: _rms(ours) for name, ours, _ in _used(layout, output, output, batch)},
    )
    return layout, [sum(array.nbytes for array in row.values()) for row in packed]


def restore(layout: OutputLayout, packed: Sequence, batch: Mapping[str, Any]) -> Any:
    """Restore a batch from packed rows, as a cache does."""
    inputs = {name: value.cpu() if isinstance(value, Tensor) else value for name, value in batch.items()}
    return layout.restore(layout.assemble(packed, inputs), torch.float32)


def compare(
    layout: OutputLayout,
    expected: Any,
    got: Any,
    batch: Mapping[str, Any],
    fault: str,
    usual: Mapping[str, float] | None = None,
) -> None:
    """
    Raise `ValueError`, which states the `fault`, unless two outputs agree where they are used. Differences are
    relative to the root mean square of the output or, if larger, to its `usual` one.
    """
    for name, ours, theirs in _used(layout, expected, got, batch):
        if ours.shape == theirs.shape and torch.equal(ours <= FORBIDDEN, theirs <= FORBIDDEN):
            size = max(_rms(ours), (usual or {}).get(name, 0.0))
            if _rms((ours - theirs).where(ours > FORBIDDEN, 0.0)) <= TOLERANCE * size:
                continue
        raise ValueError(f"The teacher says {fault}: its {name} cannot be cached. Look into it, or {OFF}.")


def _rms(values: Tensor) -> float:
    return values.where(values > FORBIDDEN, 0.0).square().mean().sqrt().item() if values.numel() else 0.0


def _used(
    layout: OutputLayout, expected: Any, got: Any, batch: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Return the outputs that objectives use, by name, in fp32."""
    pairs = []
    for name in layout.states:
        ours, theirs = expected[name], got[name]
        pairs.append((name, ours, theirs, read_mask(name, batch, ours.shape[:2], ours.device)))
    if layout.logits is not None:
        ours, theirs = expected["logits"], got["logits"]
        mask = None if ours.dim() == 2 else label_mask(batch, ours.shape[:2], ours.device, layout.offset)
        if layout.top_k is not None:
            ours, chosen = ours.topk(layout.top_k, dim=-1)
            theirs = theirs.to(chosen.device).gather(-1, chosen)
        pairs.append(("logits", ours, theirs, mask))
    pairs += [(name, expected[name], got[name], None) for name in layout.listed]
    for name, ours, theirs, mask in pairs:
        ours, theirs = ours.float(), theirs.to(ours.device).float()
        same_shape = ours.shape == theirs.shape
        yield name, *((ours[mask], theirs[mask]) if mask is not None and same_shape else (ours, theirs))
