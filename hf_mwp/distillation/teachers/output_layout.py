"""Outputs that are requested from a teacher, and their layout in a cache: rows are packed and batches restored."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ..features import Features, label_mask, read_mask
from ..objectives.objective import Objective


# Lower scores mark classes that the model forbids. They are stored as -inf, which fp16 has, and read as `finfo.min`.
FORBIDDEN = -1e30

CLASSES, POSITIONS, NODES = "classes", "positions", "nodes"


@dataclass(frozen=True)
class TeacherRequest:
    """Teacher outputs that objectives need for each batch."""

    features: tuple[str, ...]  # names of the outputs, see [`~distillation.features.Features`]
    # Arguments of `forward` that make the teacher return them.
    options: Mapping[str, bool] = field(default_factory=dict)
    listed: tuple[str, ...] = ()  # outputs with one score per item of a list, such as candidates

    @classmethod
    def of(cls, objectives: Iterable[Objective]) -> Self:
        """Collect the outputs that a list of objectives reads."""
        readers = [each for each in objectives if each.teacher_reads]
        features = sorted({name for each in readers for name in each.teacher_reads})
        options = {name: value for each in readers for name, value in each.options.items()}
        return cls(tuple(features), options, tuple(dict.fromkeys(name for each in readers for name in each.listed)))

    @property
    def states(self) -> list[str]:
        """Return the names of features with one vector for each token."""
        return [name for name in self.features if name != "logits" and name not in self.listed]

    @property
    def logits(self) -> bool:
        """Return whether logits are requested that are scores of classes."""
        return "logits" in self.features and "logits" not in self.listed


@dataclass(frozen=True)
class OutputLayout:
    """
    Names and widths of the cached outputs of a teacher, and their conversion to rows and back.

    Hidden states are stored only for tokens that are not padding; decoder states and logits only for positions with a
    label. So the stored outputs of a row do not depend on the other rows of its batch. The logits of a tree decoder
    are stored for its operators, its constants and the numbers of the row. A solver that scores candidates has all its
    scores stored, in the order of the candidates.
    """

    states: Mapping[str, int] = field(default_factory=dict)  # width by name, see [`~distillation.features.Features`]
    # CLASSES: a vector per row; POSITIONS: a vector per labelled position; NODES: like POSITIONS, with columns for the
    # numbers of the row; `None`: no logits.
    logits: str | None = None
    columns: int = 0  # number of classes, or of a solver's operators and constants
    listed: list[str] = field(default_factory=list)  # outputs with one score per item, such as candidates

    @classmethod
    def of(cls, output: Features, request: TeacherRequest, num_symbols: int | None = None) -> Self:
        """
        Return the layout of the requested outputs. `num_symbols` is the number of operators and constants of a solver.
        Raises `ValueError` if logits are not scores of a row or of its positions.
        """
        kept = {"states": {name: output[name].shape[-1] for name in request.states}, "listed": [*request.listed]}
        if not request.logits:
            return cls(**kept)
        logits = output["logits"]
        if logits.dim() not in (2, 3):
            raise ValueError(
                f"The teacher's logits have the shape {tuple(logits.shape)}, but only scores of a row or of its "
                "positions can be cached. Set `cache_teacher_outputs=False`."
            )
        if num_symbols is not None:
            return cls(**kept, logits=NODES, columns=num_symbols)
        return cls(**kept, logits=CLASSES if logits.dim() == 2 else POSITIONS, columns=logits.shape[-1])

    def pack(self, output: Features, inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """
        Return the arrays `(tokens or positions, width)` of each row of a batch by name. They are in fp16, or in fp32
        for rows with a value too large for fp16. Raises `ValueError` for NaN or infinite values.
        """
        parts: dict[str, list[np.ndarray]] = {}
        for name in self.states:
            state = output[name]
            mask = read_mask(name, inputs, state.shape[:2], state.device)
            parts[name] = _split(f"hidden states ({name})", state[mask], mask.sum(1).tolist())
        if self.logits is not None:
            logits = output["logits"].float()
            positions = [1] * len(logits)
            if self.logits != CLASSES:
                mask = label_mask(inputs, logits.shape[:2], logits.device)
                logits, positions = logits[mask], mask.sum(1).tolist()
            logits = logits.masked_fill(logits <= FORBIDDEN, -math.inf)
            parts["logits"] = _split("logits", logits, positions, may_forbid=True)
        for name in self.listed:
            exists = output[name] > torch.finfo(output[name].dtype).min
            parts[name] = _split(name, output[name][exists].unsqueeze(-1), exists.sum(1).tolist())
        rows = [_narrow(dict(zip(parts, row, strict=True))) for row in zip(*parts.values(), strict=True)]
        if self.logits == NODES:
            for row in rows:
                # All columns after the last number of the row are forbidden.
                allowed = np.isfinite(row["logits"]).any(0).nonzero()[0]
                row["logits"] = row["logits"][:, : allowed.max(initial=-1) + 1]
        return rows

    def assemble(self, rows: Sequence[Mapping[str, np.ndarray]], inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """
        Return padded tensors for a batch on the CPU from rows of [`~OutputLayout.pack`], in fp16 unless a value needs
        fp32. Masks of the batch determine the positions. Raises `ValueError` if a row has a different number of tokens
        or labels.
        """
        dtype = np.result_type(np.float16, *(array.dtype for row in rows for array in row.values()))
        batch = {name: _listed(name, rows, dtype) for name in self.listed}
        for name, width in self.states.items():
            counts = [len(row[name]) for row in rows]
            mask = read_mask(name, inputs, (len(rows), max(counts)), None).numpy()
            batch[name] = _padded(name, rows, _places(mask, counts, "tokens"), (*mask.shape, width), dtype)
        if self.logits == CLASSES:
            batch["logits"] = torch.from_numpy(np.concatenate([row["logits"] for row in rows]).astype(dtype))
        elif self.logits is not None:
            counts, width = [len(row["logits"]) for row in rows], self.columns
            mask = label_mask(inputs, (len(rows), max(counts)), None).numpy()
            if self.logits == NODES and inputs.get("number_positions") is not None:
                width += inputs["number_positions"].shape[1]
            batch["logits"] = _padded("logits", rows, _places(mask, counts, "labels"), (*mask.shape, width), dtype)
        return batch

    def restore(self, batch: Mapping[str, Tensor], dtype: torch.dtype) -> Features:
        """
        Return the outputs from the tensors of [`~OutputLayout.assemble`], on any device, with zeros at positions
        without a token or label. They are in the student's `dtype`, or in fp32 if `dtype` is less exact than fp16.
        """
        values = {name: each.to(torch.promote_types(each.dtype, dtype)) for name, each in batch.items()}
        for name in (*(["logits"] if self.logits else []), *self.listed):
            lowest = torch.finfo(values[name].dtype).min
            values[name] = values[name].masked_fill(values[name].isneginf(), lowest)
        return Features({}, values)


def _places(mask: np.ndarray, counts: Sequence[int], what: str) -> list[np.ndarray | slice]:
    """Return the positions of each row's values in the mask, as a slice if they are at the start of the row."""
    if mask.sum(1).tolist() != list(counts):
        raise ValueError(
            f"The batch has {mask.sum(1).tolist()} {what} per row, but the cached outputs of the teacher have "
            f"{list(counts)}. Use the collator with which the cache was built."
        )
    return [
        slice(0, count) if valid[:count].all() else np.flatnonzero(valid)
        for valid, count in zip(mask, counts, strict=True)
    ]


def _listed(name: str, rows: Sequence[Mapping], dtype: Any) -> Tensor:
    """Return lists of scores `(batch, longest)`, with `-inf` after the end of shorter lists."""
    batch = np.full((len(rows), max(len(row[name]) for row in rows)), -np.inf, dtype)
    for place, row in zip(batch, rows, strict=True):
        place[: len(row[name])] = row[name][:, 0]
    return torch.from_numpy(batch)


def _padded(name: str, rows: Sequence[Mapping], places: Sequence, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return values at their positions, zero elsewhere, and `-inf` in columns that a row does not have."""
    batch = np.zeros(shape, dtype)
    for row, (values, place) in enumerate(zip(rows, places, strict=True)):
        width = values[name].shape[-1]
        batch[row, place, :width] = values[name]
        if width < shape[-1]:
            batch[row, place, width:] = -np.inf
    return torch.from_numpy(batch)


def _split(name: str, values: Tensor, counts: Sequence[int], may_forbid: bool = False) -> list[np.ndarray]:
    """Return the values of each row in fp32. Raises `ValueError` if they are NaN or infinite."""
    values = values.float()
    if not (values.isfinite() | (values.isneginf() if may_forbid else False)).all():
        raise ValueError(
            f"The teacher's {name} contain NaN or infinite values. Check the teacher's weights, or run it in fp32."
        )
    return [part.numpy() for part in values.cpu().split(list(counts))]


def _narrow(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a row in fp16, or unchanged if a value is too large for fp16."""
    with np.errstate(over="ignore"):
        half = {name: values.astype(np.float16) for name, values in row.items()}
    too_large = any((np.isinf(half[name]) & np.isfinite(values)).any() for name, values in row.items())
    return row if too_large else half
