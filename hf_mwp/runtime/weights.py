"""Safetensors weights as NumPy arrays, in full or half precision or int8."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hf_mwp.utils.json_fields import TEXT, check_fields, damaged, object_of, read_mapping
from hf_mwp.utils.usage_error import UsageError


FILE_NAME = "model.safetensors"
INDEX_NAME = f"{FILE_NAME}.index.json"
SCALE = ".scale"
"""Suffix of the name of an int8 tensor's scales, one for each row, which is multiplied by it."""

MIN_SIZE = 4096
"""Minimum number of elements of a quantized matrix; quantizing smaller matrices saves no space."""

Linear = tuple[np.ndarray, np.ndarray | float]
"""Matrix `(in, out)` and bias `(out,)` of a linear layer."""

_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I8": np.int8}
_INDEX = {"weight_map": object_of(TEXT)}


@dataclass(frozen=True)
class StoredTensor:
    """Place of a tensor in a safetensors file."""

    path: Path
    offset: int  # of its first byte in the file
    dtype: str  # name in the header
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(_TYPES[self.dtype]).itemsize

    def read(self) -> np.ndarray:
        """Read the values as they are stored (bfloat16 as integers). Raises `UsageError` if the file was cut short."""
        size = math.prod(self.shape)
        try:
            # Not mapped into memory, because a process is killed when a mapped file is cut short.
            values = np.fromfile(self.path, _TYPES[self.dtype], size, offset=self.offset)
        except OSError as error:
            raise damaged(f"{self.path} cannot be read ({error})") from error
        if values.size != size:
            raise damaged(f"{self.path} is damaged (it was cut short)")
        return values.reshape(self.shape)


class Table:
    """Rows of a tensor, kept in memory as they are stored and converted to float32 when they are used."""

    def __init__(self, values: np.ndarray, is_bfloat16: bool, scales: np.ndarray | None) -> None:
        self.values = values
        self.is_bfloat16 = is_bfloat16
        self.scales = scales

    def rows(self, chosen: np.ndarray | slice) -> np.ndarray:
        """Return the chosen rows in float32."""
        values = self.values[chosen]
        if self.is_bfloat16:
            return (values.astype(np.uint32) << 16).view(np.float32)
        rows = values.astype(np.float32)
        if self.scales is not None:
            rows *= self.scales[chosen].astype(np.float32).reshape(-1, *[1] * (rows.ndim - 1))
        return rows


class Weights:
    """Tensors in a model's folder, read when they are used. Raises `UsageError` for a missing or damaged file."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.stored: dict[str, StoredTensor] = {}
        for name in weight_files(self.folder):
            self.stored |= read_header(self.folder / name)

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a tensor in float32."""
        return self.table(name).rows(slice(None))

    def table(self, name: str) -> Table:
        """Return the rows of a tensor, which takes less memory than all of them in float32."""
        stored = self._find(name)
        scales = None
        if stored.dtype == "I8":
            scales = self._find(name + SCALE).read()
        return Table(stored.read(), stored.dtype == "BF16", scales)

    def _find(self, name: str) -> StoredTensor:
        if name not in self.stored:
            raise UsageError(f"The weights in {self.folder} lack {name}. Download or export the solver again.")
        return self.stored[name]

    def not_finite(self) -> list[str]:
        """Return the names of tensors with NaN or infinite values."""
        return [name for name in self.stored if not np.isfinite(self[name]).all()]

    def linear(self, prefix: str, bias: bool = True) -> Linear:
        """Return matrix `(in, out)` and bias `(out,)` of a linear layer."""
        matrix = np.ascontiguousarray(self[f"{prefix}.weight"].T)
        return matrix, self[f"{prefix}.bias"] if bias else 0.0


def weight_files(folder: Path) -> list[str]:
    """Return the names of the safetensors files in a model's folder: one, or those of its index."""
    index = folder / INDEX_NAME
    if (folder / FILE_NAME).is_file() or not index.is_file():
        return [FILE_NAME]
    fields = check_fields(read_mapping(index), _INDEX, index)
    names = sorted(set(fields["weight_map"].values()))
    for name in names:
        if Path(name).name != name:
            raise UsageError(f"{index}: `weight_map` must contain names of files in the folder, not {name!r:.80}.")
    return names


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Read the places of the tensors in a safetensors file. Raises `UsageError` if the file is missing, or its header
    does not describe the file: known types, and bytes that follow each other to the end."""
    try:
        with open(path, "rb") as file:
            size = path.stat().st_size
            start = 8 + int.from_bytes(file.read(8), "little")
            if not 8 < start <= size:
                raise ValueError(f"a header of {start - 8:,} bytes in a file of {size:,}")
            header = json.loads(file.read(start - 8))
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        header.pop("__metadata__", None)
        stored = {name: _read_entry(name, entry, path, start) for name, entry in header.items()}
        end = start
        # Empty tensors come before the tensor at the same offset.
        for name in sorted(stored, key=lambda name: (stored[name].offset, stored[name].num_bytes)):
            if stored[name].offset != end:
                raise ValueError(f"`{name}` does not begin where the tensor before it ends")
            end += stored[name].num_bytes
        if end != size:
            raise ValueError(f"its tensors end at byte {end:,} of {size:,}")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{path.parent} has a config.json but no weights ({path.name}).") from error
    except RecursionError as error:
        raise damaged(f"{path} is damaged (its header is nested too deeply)") from error
    except (OSError, ValueError) as error:
        raise damaged(f"{path} is damaged or cut short ({error})") from error
    return stored


def _read_entry(name: str, entry: Any, path: Path, start: int) -> StoredTensor:
    """Return the place of a tensor by its entry in the header. Raises `ValueError` if the entry is invalid."""
    if not isinstance(entry, dict):
        raise ValueError(f"`{name}` has no entry in the header")
    dtype = entry.get("dtype")
    shape = entry.get("shape")
    offsets = entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise ValueError(f"`{name}` has the type {dtype!r:.20}, which is none of {', '.join(_TYPES)}")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"`{name}` has the shape {shape!r:.80} and the offsets {offsets!r:.80}")
    begin, end = offsets
    tensor = StoredTensor(path, start + begin, dtype, tuple(shape))
    if end - begin != tensor.num_bytes:
        raise ValueError(f"`{name}` has {end - begin:,} bytes, which do not fit the shape {shape} of {dtype}")
    return tensor


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**48 for value in values)


def quantize_int8(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Round matrices to int8, with scales `(rows,)` named `name.scale`, and other tensors to float16."""
    quantized = {}
    for name, values in tensors.items():
        if values.ndim != 2 or values.size < MIN_SIZE:
            quantized[name] = values.astype(np.float16)
            continue
        values = values.astype(np.float32)
        # Divide by the scale in its stored precision, so that rounding the scale adds no error.
        scale = np.maximum(np.abs(values).max(1) / 127, 1e-7).astype(np.float16)
        steps = np.rint(values / scale.astype(np.float32)[:, None])
        quantized[name] = np.clip(steps, -127, 127).astype(np.int8)
        quantized[name + SCALE] = scale
    return quantized
