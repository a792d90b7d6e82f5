"""Layout of cached teacher outputs: packing them into rows and restoring batches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ...features import Features
from ...masks import label_mask, read_mask
from ..teacher_request import TeacherRequest


# Lower scores mean classes that the model forbids; kept as -inf, which fp16 has, and read as `finfo.min`.
FORBIDDEN = -1e30

CLASSES, POSITIONS, NODES = "classes", "positions", "nodes"
INDICES = "indices"  # of the likeliest classes


@dataclass(frozen=True)
class OutputLayout:
    """
    Parts of a teacher's output that are cached, and their widths.

    Hidden states are kept for valid tokens only (by the attention mask; all without one), a decoder's states and
    logits for positions with a label only (or items of the decoder's own list), so nothing depends on the batch in
    which a row happens to stand. A solver's logits are kept for its operators, its constants and the row's
    own numbers; of a solver that judges candidates all scores are, in the order in which they are judged.

    With `top_k`, a position keeps the scores of the `k` likeliest classes and one more number for all others, which
    share the rest of the probability evenly: at `temperature` the probabilities of the `k` classes, and that of the
    others together, are the teacher's own.
    """

    states: Mapping[str, int] = field(default_factory=dict)  # width by name, see [`~distillation.features.Features`]
    # CLASSES: a vector per row; POSITIONS: one per labelled position; NODES: as these, with columns for the row's own
    # numbers; `None`: no logits.
    logits: str | None = None
    columns: int = 0  # classes; of a solver, its operators and constants
    top_k: int | None = None  # classes kept per position; all if `None`
    temperature: float = 1.0  # at which `top_k` is exact
    offset: int = 0  # how many positions before its label a prediction stands, see [`label_offset`]
    listed: tuple[str, ...] = ()  # outputs with one score for each item of a list of the row's own length

    def __post_init__(self) -> None:
        # A manifest has lists.
        object.__setattr__(self, "listed", tuple(self.listed))

    @classmethod
    def of(cls, output: Features, request: TeacherRequest, num_symbols: int | None = None) -> Self:
        """
        The layout for what is asked of outputs like a given one; `num_symbols` are the operators and constants of a
        solver. Raises `ValueError` if logits are not scores of a row or of its positions.
        """
        layout = cls(states={name: output[name].shape[-1] for name in request.states}, listed=request.listed)
        if not request.logits:
            return layout
        logits = output["logits"]
        if logits.dim() not in (2, 3):
            raise ValueError(
                f"The teacher's logits have the shape {tuple(logits.shape)}; only scores of a row or of its positions "
                "can be cached. Set `cache_teacher_outputs=False`."
            )
        if num_symbols is not None:
            return replace(layout, logits=NODES, columns=num_symbols)
        kind = CLASSES if logits.dim() == 2 else POSITIONS
        layout = replace(layout, logits=kind, columns=logits.shape[-1], offset=request.offset)
        if request.top_k is None or request.top_k >= layout.columns:
            return layout
        return replace(layout, top_k=request.top_k, temperature=request.temperature or 1.0)

    @property
    def names(self) -> list[str]:
        """Names of a row's arrays, in order: states, logits, and indices of the kept logits if there are any."""
        classes = [*(["logits"] if self.logits else []), *([INDICES] if self.top_k else [])]
        return [*self.states, *classes, *self.listed]

    @property
    def widths(self) -> dict[str, int | None]:
        """Return how many numbers stand together, by name; `None` for logits of classes, where a row has its own."""
        return {**self.states, "logits": None, INDICES: self.top_k, **dict.fromkeys(self.listed, 1)}

    # From an output to rows

    def pack(self, output: Features, inputs: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """
        Return the cached arrays of each row of a batch by name, `(tokens or positions, width)`, in fp16, or all arrays
        of the row in fp32 if a number is too large. Raises `ValueError` if outputs of the teacher are NaN or infinite
        numbers.
        """
        parts, indices = {}, None
        for name in self.states:
            state = output[name]
            mask = read_mask(name, inputs, state.shape[:2], state.device)
            parts[name] = _PackedPart(f"hidden states ({name})", state[mask], mask.sum(1).tolist())
        if self.logits is not None:
            logits = output["logits"].float()
            positions = [1] * len(logits)
            if self.logits != CLASSES:
                mask = label_mask(inputs, logits.shape[:2], logits.device, self.offset)
                logits, positions = logits[mask], mask.sum(1).tolist()
            logits = logits.masked_fill(logits <= FORBIDDEN, -math.inf)
            if self.top_k is not None:
                logits, chosen = self._choose(logits)
                indices = [part.numpy() for part in chosen.int().cpu().split(positions)]
            parts["logits"] = _PackedPart("logits", logits, positions, may_forbid=True)
        for name in self.listed:
            exists = output[name] > torch.finfo(output[name].dtype).min
            parts[name] = _PackedPart(name, output[name][exists].unsqueeze(-1), exists.sum(1).tolist())
        count = max((len(part.counts) for part in parts.values()), default=0)
        wide_rows = set().union(*(part.wide_rows for part in parts.values()))
        rows = [{name: part.row(row, row in wide_rows) for name, part in parts.items()} for row in range(count)]
        if self.logits == NODES:
            for row, numbers in zip(rows, _last_numbers(inputs.get("number_positions"), count), strict=True):
                row["logits"] = row["logits"][:, : self.columns + numbers]
        for row, chosen in zip(rows, indices or (), strict=False):
            row[INDICES] = chosen
        return rows

    def _choose(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of the likeliest classes with the score of each other one behind them, and their indices."""
        values, chosen = logits.topk(self.top_k, dim=-1)
        others = logits.scatter(-1, chosen, -math.inf) / self.temperature
        rest = (others.logsumexp(-1, keepdim=True) - math.log(self.columns - self.top_k)) * self.temperature
        return torch.cat([values, rest], -1), chosen

    # From rows to a batch

    def assemble(self, rows: Sequence[Mapping[str, np.ndarray]], inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """
        Padded tensors of rows from [`~OutputLayout.pack`], in fp16 unless a number needs fp32, for a batch on the CPU,
        whose masks say where what belongs. Raises `ValueError` if a row has another number of tokens or labels.
        """
        numbers = [array.dtype for row in rows for name, array in row.items() if name != INDICES]
        dtype = np.result_type(*numbers) if numbers else np.float16
        batch = {name: _listed(name, rows, dtype) for name in self.listed}
        for name, width in self.states.items():
            counts = [len(row[name]) for row in rows]
            mask = read_mask(name, inputs, (len(rows), max(counts)), None).numpy()
            batch[name] = _padded(name, rows, _places(mask, counts, "tokens"), (*mask.shape, width), dtype)
        if self.logits == CLASSES:
            batch["logits"] = torch.from_numpy(np.concatenate([row["logits"] for row in rows]).astype(dtype))
            if self.top_k is not None:
                batch[INDICES] = torch.from_numpy(np.concatenate([row[INDICES] for row in rows]))
        elif self.logits is not None:
            counts, width = [len(row["logits"]) for row in rows], max(row["logits"].shape[1] for row in rows)
            mask = label_mask(inputs, (len(rows), max(counts)), None, self.offset).numpy()
            places = _places(mask, counts, "labels")
            if self.logits == NODES:
                positions = inputs.get("number_positions")
                width = self.columns + (0 if positions is None else positions.shape[1])
            batch["logits"] = _padded("logits", rows, places, (*mask.shape, width), dtype)
            if self.top_k is not None:
                batch[INDICES] = _padded(INDICES, rows, places, (*mask.shape, self.top_k), np.int32)
        return batch

    def restore(self, batch: Mapping[str, Tensor], dtype: torch.dtype) -> Features:
        """
        The output that [`~OutputLayout.assemble`] made parts of, wherever these are now, zero where no token or no
        label stands: in the student's `dtype`, or in fp32 where that is less exact than fp16.
        """
        values = {
            name: each.to(torch.promote_types(each.dtype, dtype)) for name, each in batch.items() if name != INDICES
        }
        if self.logits is not None:
            logits = values["logits"]
            if self.top_k is not None:
                kept, rest = logits.split([self.top_k, 1], -1)
                full = rest.expand(*rest.shape[:-1], self.columns).clone()
                logits = full.scatter(-1, batch[INDICES].long(), kept)
            values["logits"] = logits
        for name in (*(["logits"] if self.logits else []), *self.listed):
            lowest = torch.finfo(values[name].dtype).min
            values[name] = values[name].masked_fill(values[name].isneginf(), lowest)
        return Features({}, values)


def _last_numbers(positions: Tensor | None, count: int) -> list[int]:
    """Return the number of each row's last number token."""
    if positions is None or not positions.shape[1]:
        return [0] * count
    order = torch.arange(1, positions.shape[1] + 1, device=positions.device)
    return ((positions >= 0) * order).amax(1).tolist()


def _places(mask: np.ndarray, counts: Sequence[int], what: str) -> list[np.ndarray | slice]:
    """
    Return where the values of each row belong: the places of the mask, as a slice where they stand at its beginning.
    """
    if mask.sum(1).tolist() != list(counts):
        raise ValueError(
            f"The batch has {mask.sum(1).tolist()} {what} a row, the cached outputs of the teacher {list(counts)}: "
            "its collator is not the one with which the cache was built."
        )
    return [
        slice(0, count) if valid[:count].all() else np.flatnonzero(valid)
        for valid, count in zip(mask, counts, strict=True)
    ]


def _listed(name: str, rows: Sequence[Mapping], dtype: Any) -> Tensor:
    """Lists of scores `(batch, longest)`, forbidden where a row has fewer items."""
    batch = np.full((len(rows), max(len(row[name]) for row in rows)), -np.inf, dtype)
    for place, row in zip(batch, rows, strict=True):
        place[: len(row[name])] = row[name][:, 0]
    return torch.from_numpy(batch)


def _padded(name: str, rows: Sequence[Mapping], places: Sequence, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Values at their places and zero elsewhere; columns that a row lacks are forbidden to it."""
    batch = np.zeros(shape, dtype)
    for row, (values, place) in enumerate(zip(rows, places, strict=True)):
        width = values[name].shape[-1]
        batch[row, place, :width] = values[name]
        if width < shape[-1]:
            batch[row, place, width:] = -np.inf
    return torch.from_numpy(batch)


class _PackedPart:
    """
    One kind of numbers of a batch, `(tokens or positions of all rows, width)`: in fp16, or in fp32 in `wide_rows`,
    where one is beyond its range. Raises `ValueError` if one is NaN or infinite; `may_forbid` allows `-inf`.
    """

    def __init__(self, name: str, values: torch.Tensor, counts: Sequence[int], may_forbid: bool = False) -> None:
        self.counts = list(counts)
        self.stops = np.cumsum(self.counts)
        self.full = values.float()
        half = self.full.half()
        odd = ~half.isfinite()
        self.wide_rows: set[int] = set()
        if may_forbid:
            odd &= ~self.full.isneginf()
        if odd.any():
            if not self.full[odd].isfinite().all():
                raise ValueError(
                    f"The teacher's {name} hold numbers that are NaN or infinite: there is nothing to learn from it. "
                    "Look at its weights, or run it in fp32."
                )
            places = odd.any(-1).nonzero().flatten().cpu().numpy()
            self.wide_rows = set(np.searchsorted(self.stops, places, side="right").tolist())
        self.half = half.cpu().numpy()

    def row(self, row: int, wide: bool) -> np.ndarray:
        """The numbers of a row, fp16 or fp32."""
        here = slice(self.stops[row] - self.counts[row], self.stops[row])
        return self.full[here].cpu().numpy() if wide else self.half[here]
