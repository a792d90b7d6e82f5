"""Cache of a frozen teacher's outputs on disk, and their layout in rows."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.models.batch_inputs import num_choices, shift_labels
from hf_mwp.compress.models.prediction_kind import PER_LABEL, PER_ROW, PER_TOKEN
from hf_mwp.utils.row_store import RowStore, StoreError

from .features import Features, label_mask, read_mask, token_mask
from .objectives.objective import TeacherRequest
from .top_classes import TOP_CLASSES, TopClasses


# Lower scores mark classes that the model forbids. They are stored as -inf, which fp16 has, and read as `finfo.min`.
FORBIDDEN = -1e30

CLASSES = "classes"
POSITIONS = "positions"
NODES = "nodes"
TOP = "top"
MASKS = {PER_TOKEN: token_mask, PER_LABEL: label_mask}
DTYPES = {"F16": np.float16, "F32": np.float32, "I32": np.int32}
CacheError = StoreError
"""Error for a folder that does not contain the expected cache."""


@dataclass(frozen=True)
class OutputLayout:
    """
    Names and widths of the cached outputs of a teacher, and their conversion to rows and back.

    Hidden states are stored only for tokens that are not padding, decoder states and logits only for positions with a
    label, and logits of a tree decoder only for operators, constants and numbers of the row. So the stored outputs of
    a row do not depend on the other rows of its batch. Scores of candidates are all stored, in their order. For a
    large vocabulary, the logits are the log-probabilities of the most likely classes, which are stored beside them
    ([`~distillation.top_classes.TopClasses`]).
    """

    states: Mapping[str, int] = field(default_factory=dict)  # width by name, see [`~distillation.features.Features`]
    # CLASSES: a vector per row; POSITIONS: per labelled position; NODES: with columns for numbers; TOP: per labelled
    # position, the log-probabilities of the most likely classes; `None`: no logits.
    logits: str | None = None
    columns: int = 0  # number of classes, of a solver's operators and constants, or of the most likely classes and one
    listed: list[str] = field(default_factory=list)  # outputs with one score per item, such as candidates
    label_shift: int = 0  # number of positions from a prediction to its label
    storage: Mapping[str, str] = field(default_factory=dict)  # further outputs: PER_TOKEN, PER_LABEL or PER_ROW

    @classmethod
    def of(
        cls, output: Features, request: TeacherRequest, num_symbols: int | None = None, label_shift: int = 0
    ) -> Self:
        """Return the layout of the requested outputs. `num_symbols` counts a solver's operators and constants. Raises
        `ValueError` for logits that cannot be stored."""
        states = {name: output[name].shape[-1] for name in request.states}
        listed = list(request.listed)
        if not request.logits:
            return cls(states, listed=listed, storage=dict(request.storage))
        logits = output["logits"]
        if logits.dim() not in (2, 3):
            shape = tuple(logits.shape)
            raise ValueError(f"Logits of the shape {shape} cannot be cached. Set `cache_teacher_outputs=False`.")
        if num_symbols is not None:
            return cls(states, NODES, num_symbols, listed)
        if request.top_classes is not None:
            return cls(states, TOP, request.top_classes.count + 1, listed, label_shift)
        layout = CLASSES if logits.dim() == 2 else POSITIONS
        return cls(states, layout, logits.shape[-1], listed, label_shift)

    def pack(
        self, output: Features, inputs: Mapping[str, Any], top_classes: TopClasses | None = None
    ) -> list[dict[str, np.ndarray]]:
        """Return the arrays `(tokens, width)` of each row by name, in fp32 if a value is too large for fp16.
        `top_classes` chooses the logits of the layout TOP."""
        arrays = {}
        for name in self.states:
            state = output[name]
            mask = read_mask(name, inputs, state.shape[:2], state.device)
            lengths = _mask_of_rows(mask, inputs).sum(1).tolist()
            arrays[name] = _split(f"hidden states ({name})", state[mask], lengths)
        if self.logits is not None:
            logits = output["logits"]
            positions = [1] * len(logits)
            if self.logits != CLASSES:
                mask = self._mask_of_logits(inputs, logits.shape[:2], logits.device)
                logits = logits[mask]
                positions = mask.sum(1).tolist()
            if self.logits == TOP:
                labels = inputs.get("labels")
                targets = None if labels is None else shift_labels(labels, self.label_shift)[mask]
                classes, logits = top_classes.of(logits, targets)
                arrays[TOP_CLASSES] = [row.numpy() for row in classes.int().cpu().split(positions)]
            logits = logits.float()
            logits = logits.masked_fill(logits <= FORBIDDEN, -math.inf)
            arrays["logits"] = _split("logits", logits, positions, may_forbid=True)
        for name in self.listed:
            exists = output[name] > torch.finfo(output[name].dtype).min
            arrays[name] = _split(name, output[name][exists].unsqueeze(-1), exists.sum(1).tolist())
        for name, unit in self.storage.items():
            arrays[name] = _split_by_unit(name, unit, output[name], inputs)
        rows = []
        for row_arrays in zip(*arrays.values(), strict=True):
            row = _narrow(dict(zip(arrays, row_arrays, strict=True)))
            if self.logits == NODES:
                # All columns after the last number of the row are forbidden.
                allowed = np.isfinite(row["logits"]).any(0).nonzero()[0]
                row["logits"] = row["logits"][:, : allowed.max(initial=-1) + 1]
            rows.append(row)
        return rows

    def _mask_of_logits(self, inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
        return label_mask(inputs, shape, device, self.label_shift)

    def assemble(self, rows: Sequence[Mapping[str, np.ndarray]], inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return padded tensors on the CPU from rows of [`~OutputLayout.pack`], at positions in the batch's masks."""
        dtype = np.dtype(np.float16)
        for row in rows:
            for name, array in row.items():
                if name != TOP_CLASSES:
                    dtype = np.promote_types(dtype, array.dtype)
        batch = {}
        for name in self.listed:
            lists = [torch.from_numpy(row[name][:, 0].astype(dtype)) for row in rows]
            batch[name] = pad_sequence(lists, batch_first=True, padding_value=-math.inf)
        for name, width in self.states.items():
            mask = read_mask(name, inputs, _shape(name, rows), None)
            states = _padded(name, rows, _mask_of_rows(mask, inputs).numpy(), width, dtype)
            batch[name] = states.view(*mask.shape, width)
        for name, unit in self.storage.items():
            batch[name] = _assembled(name, unit, rows, inputs, dtype)
        if self.logits == CLASSES:
            logits = np.concatenate([row["logits"] for row in rows])
            batch["logits"] = torch.from_numpy(logits.astype(dtype))
        elif self.logits is not None:
            mask = self._mask_of_logits(inputs, _shape("logits", rows), None)
            width = self.columns
            if self.logits == NODES and inputs.get("number_positions") is not None:
                width += inputs["number_positions"].shape[1]
            batch["logits"] = _padded("logits", rows, mask.numpy(), width, dtype)
        if self.logits == TOP:
            batch[TOP_CLASSES] = _padded(TOP_CLASSES, rows, mask.numpy(), self.columns - 1, np.int32)
        return batch

    def restore(self, batch: Mapping[str, Tensor], dtype: torch.dtype) -> Features:
        """Return the outputs on any device, in the student's `dtype`, or in fp32 if that is less exact than fp16."""
        outputs = {}
        for name, values in batch.items():
            if name == TOP_CLASSES:
                outputs[name] = values.long()
                continue
            values = values.to(torch.promote_types(values.dtype, dtype))
            if name == "logits" or name in self.listed or name in self.storage:
                values = values.masked_fill(values.isneginf(), torch.finfo(values.dtype).min)
            outputs[name] = values
        return Features({}, outputs)


class TeacherCache(RowStore):
    """Cache of a frozen teacher's outputs for the rows of a dataset. Rows are found by their keys (`row_key` in
    `fingerprints.py`), and stored in the safetensors format (see [`OutputLayout`]). Arguments are as in
    [`~store.RowStore`]. Raises `CacheError` if the folder belongs to another cache, or its manifest cannot be read."""

    made_by = "a different teacher, dataset or collator"
    remedy = "choose a different `teacher_cache_dir`"

    @property
    def layout(self) -> OutputLayout | None:
        """Return the layout of a row, or `None` while the cache is empty."""
        return OutputLayout(**self.about["layout"]) if self.about else None

    def read(self, keys: Sequence[bytes]) -> list[dict[str, np.ndarray]]:
        """Return the rows of the keys in the form of [`OutputLayout.pack`]. Raises `CacheError` if one is missing."""
        numbers = self.find(keys).tolist()
        if -1 in numbers:
            raise CacheError(
                f"{self.folder} has no example {numbers.index(-1)} of the batch: the dataset returns different rows "
                "than at the start of training. Rows that change cannot be cached: set `cache_teacher_outputs=False`."
            )
        return [_arrays_of(memoryview(row["outputs"])) for row in self.rows(numbers, ["outputs"])]

    def fill(self, layout: OutputLayout, made_from: Mapping[str, Any], batches: Iterable[tuple[list, list]]) -> None:
        """Add keys and rows of [`OutputLayout.pack`] under the caller's lock. `made_from` is for human readers."""
        import pyarrow

        schema = pyarrow.schema({"key": pyarrow.binary(16), "outputs": pyarrow.binary()})
        with self.writing(schema, {"made_from": made_from, "layout": asdict(layout)}):
            for keys, rows in batches:
                outputs = []
                for row in rows:
                    # `save` reads the memory of an array as if it were contiguous.
                    arrays = {name: np.ascontiguousarray(array) for name, array in row.items()}
                    outputs.append(save(arrays))
                self.append({"key": keys, "outputs": outputs})


def _arrays_of(row: memoryview) -> dict[str, np.ndarray]:
    """Return the arrays in the safetensors format like `safetensors.numpy.load`, which would copy the row twice."""
    start = 8 + int.from_bytes(row[:8], "little")
    arrays = {}
    for name, header in json.loads(bytes(row[8:start])).items():
        first, end = header["data_offsets"]
        values = np.frombuffer(row[start + first : start + end], DTYPES[header["dtype"]])
        arrays[name] = values.reshape(header["shape"])
    return arrays


def _shape(name: str, rows: Sequence[Mapping]) -> tuple[int, int]:
    """Return the number of rows and the length of the longest row."""
    return len(rows), max(len(row[name]) for row in rows)


def _padded(name: str, rows: Sequence[Mapping], mask: np.ndarray, width: int, dtype: Any) -> Tensor:
    """Return values at the positions of the mask, zero elsewhere, and `-inf` in columns that a row does not have."""
    lengths = [len(row[name]) for row in rows]
    mask_lengths = mask.sum(1).tolist()
    if mask_lengths != lengths:
        items = "labels" if name == "logits" else "tokens"
        raise ValueError(
            f"The batch has {mask_lengths} {items} per row, but the cached outputs of the teacher have {lengths}. Use "
            "the collator with which the cache was built."
        )
    batch = np.zeros((*mask.shape, width), dtype)
    for index, (row, row_mask) in enumerate(zip(rows, mask, strict=True)):
        values = row[name]
        if row_mask[: len(values)].all():
            # A slice is faster than indices.
            positions = slice(0, len(values))
        else:
            positions = np.flatnonzero(row_mask)
        columns = values.shape[-1]
        batch[index, positions, :columns] = values
        if columns < width:
            batch[index, positions, columns:] = -np.inf
    return torch.from_numpy(batch)


def _mask_of_rows(mask: Tensor, inputs: Mapping[str, Any]) -> Tensor:
    """Return a mask `(texts, tokens)` with the texts of each row (multiple choice) one after the other."""
    count = num_choices(inputs)
    return mask if count is None else mask.reshape(-1, count * mask.shape[1])


def _split_by_unit(name: str, unit: str, values: Tensor, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """Return the values `(items, width)` of each row that a cache stores of an output."""
    counts = [1] * len(values)
    if unit == PER_TOKEN:
        values = values.unsqueeze(-1)
    if unit != PER_ROW:
        mask = MASKS[unit](inputs, values.shape[:2], values.device)
        values = values[mask]
        counts = mask.sum(1).tolist()
    values = values.float()
    values = values.masked_fill(values <= FORBIDDEN, -math.inf)
    return _split(name, values, counts, may_forbid=True)


def _assembled(name: str, unit: str, rows: Sequence[Mapping], inputs: Mapping[str, Any], dtype: Any) -> Tensor:
    """Return an output on the CPU from the values of [`_split_by_unit`]."""
    if unit == PER_ROW:
        values = np.concatenate([row[name] for row in rows])
        return torch.from_numpy(values.astype(dtype))
    mask = MASKS[unit](inputs, _shape(name, rows), None)
    values = _padded(name, rows, mask.numpy(), rows[0][name].shape[-1], dtype)
    return values.squeeze(-1) if unit == PER_TOKEN else values


def _split(name: str, values: Tensor, counts: Sequence[int], may_forbid: bool = False) -> list[np.ndarray]:
    """Return the values of each row in fp32. Raises `ValueError` if they are NaN or infinite."""
    values = values.float()
    valid = values.isfinite()
    if may_forbid:
        valid |= values.isneginf()
    if not valid.all():
        raise ValueError(
            f"The teacher's {name} contain NaN or infinite values. Check the teacher's weights, or run it in fp32."
        )
    return [row.numpy() for row in values.cpu().split(list(counts))]


def _narrow(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a row in fp16, or unchanged if a value is too large for fp16."""
    half = {}
    for name, values in row.items():
        if name == TOP_CLASSES:
            half[name] = values
            continue
        with np.errstate(over="ignore"):
            half[name] = values.astype(np.float16)
        is_too_large = np.isinf(half[name]) & np.isfinite(values)
        if is_too_large.any():
            return row
    return half
