"""Checks that a teacher's outputs can be cached."""

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

# Largest relative distance that counts as rounding. It is 3e-4 for fp16 storage, and 1e-2 for a bf16 teacher and a row
# in different batches. Dropout, or attention to padding, causes tens of per cent. A row with smaller values than the
# other rows, as in a regression, is compared relative to the other rows.
TOLERANCE = 2e-2


@contextmanager
def random_state_kept():
    """Restore the random generators of torch, numpy and Python at the end of the context."""
    states = random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


def check_evaluating(teacher: nn.Module) -> None:
    """Raise `ValueError` if a module of the teacher is in training mode, so that its dropout is active."""
    training = [name or type(teacher).__name__ for name, module in teacher.named_modules() if module.training]
    if training:
        raise ValueError(
            f"The teacher is in training mode ({', '.join(training[:3])}), so dropout changes its outputs each time "
            f"and they cannot be cached. Call `teacher.eval()`, or {OFF}."
        )


def check_repeatable(
    first_keys: Sequence[bytes],
    second_keys: Sequence[bytes],
    first_batch: Mapping[str, Any],
    second_batch: Mapping[str, Any],
) -> None:
    """Raise `ValueError` unless reading and collating the same rows twice returns the same batches."""
    if list(first_keys) != list(second_keys):
        raise ValueError(
            "The dataset returns different rows when it is read again (a random transform?), so the teacher's "
            f"outputs cannot be cached. Apply the transform once, beforehand (`dataset.map`), or {OFF}."
        )
    for name, value in first_batch.items():
        if isinstance(value, Tensor) and not torch.equal(value, second_batch[name]):
            raise ValueError(
                f"The collator returns a different {name!r} for the same rows each time, so the teacher's outputs "
                "cannot be cached. Mask tokens once, beforehand, and save the result in the rows (`dataset.map` with "
                f"the masking collator), or {OFF}."
            )


def check_teacher(
    make_layout: Callable[[Any], OutputLayout],
    ask: Callable[[Mapping[str, Any]], Any],
    collate: Callable[[Sequence[int]], Mapping[str, Any]],
    rows: Sequence[int],
) -> tuple[OutputLayout, list[int]]:
    """
    Raise `ValueError` if the teacher's outputs differ between runs, between batches, or after storage. The teacher
    runs twice on some rows, longest first, and once on only the last of them. Return the layout that `make_layout`
    creates for the output, and the bytes that each row needs.
    """
    batch, alone = collate(rows), collate(rows[-1:])
    output = ask(batch)
    layout = make_layout(output)
    packed = layout.pack(output, batch)
    compare(layout, output, ask(batch), batch, "differ between two runs (is dropout active?)")
    restored = restore(layout, packed, batch)
    compare(layout, output, restored, batch, "change when they are stored and read")
    compare(
        layout,
        ask(alone),
        restore(layout, packed[-1:], alone),
        alone,
        "for a row depend on longer rows in its batch (is there no attention mask for the padding?)",
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
    Raise `ValueError` with the given `fault` unless two outputs agree at the positions that are used. Differences are
    relative to the root mean square of the output or, if larger, to the output's `usual` one.
    """
    for name, ours, theirs in _used(layout, expected, got, batch):
        if ours.shape == theirs.shape and torch.equal(ours <= FORBIDDEN, theirs <= FORBIDDEN):
            size = max(_rms(ours), (usual or {}).get(name, 0.0))
            if _rms((ours - theirs).where(ours > FORBIDDEN, 0.0)) <= TOLERANCE * size:
                continue
        raise ValueError(
            f"The teacher's outputs {fault}, so its {name} cannot be cached. Correct the teacher, or {OFF}."
        )


def _rms(values: Tensor) -> float:
    return values.where(values > FORBIDDEN, 0.0).square().mean().sqrt().item() if values.numel() else 0.0


def _used(
    layout: OutputLayout, expected: Any, got: Any, batch: Mapping[str, Any]
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the name and both values of each output that objectives use, in fp32."""
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
