"""Safetensors weights as NumPy arrays, in full or half precision or int8."""

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..usage_error import UsageError


FILE_NAME = "model.safetensors"
SCALE = ".scale"
"""Suffix of the name of an int8 tensor's scales, one for each row, which is multiplied by it."""

MIN_SIZE = 4096
"""Minimum number of elements of a quantized matrix; quantizing smaller matrices saves no space."""

_TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I8": np.int8}


class Weights:
    """Tensors in a model's folder, read when they are used. Raises `UsageError` for a missing or damaged file."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder = Path(folder)
        index = folder / f"{FILE_NAME}.index.json"
        names = [FILE_NAME]
        if index.is_file() and not (folder / FILE_NAME).is_file():
            names = sorted(set(read_json(index)["weight_map"].values()))
        self._stored: dict[str, np.ndarray] = {}
        self._places: dict[str, tuple[Path, int]] = {}
        self._bfloat16: set[str] = set()
        for name in names:
            self._read(folder / name)

    def _read(self, path: Path) -> None:
        try:
            with open(path, "rb") as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            start = 8 + int.from_bytes(content[:8], "little")
            header: dict[str, Any] = json.loads(bytes(content[8:start]))
            header.pop("__metadata__", None)
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                values = np.frombuffer(content[start + begin : start + end], _TYPES[entry["dtype"]])
                self._stored[name] = values.reshape(entry["shape"])
                self._places[name] = (path, start + begin)
                if entry["dtype"] == "BF16":
                    self._bfloat16.add(name)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError(f"{path} does not exist. Pass the folder of a saved solver.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged or cut short ({error}). Download or export it again.") from error

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a tensor in float32."""
        values = self._find(name)
        path, offset = self._places[name]
        # Read the file instead of the mapping, whose pages would stay in memory in addition to the copy.
        read = np.fromfile(path, values.dtype, values.size, offset=offset).reshape(values.shape)
        return self._to_float32(name, read)

    def rows(self, name: str, chosen: np.ndarray | slice) -> np.ndarray:
        """Return the chosen rows of a tensor in float32, without reading other rows."""
        return self._to_float32(name, self._find(name)[chosen], chosen)

    def _find(self, name: str) -> np.ndarray:
        if name not in self._stored:
            raise UsageError(f"The weights in {self.folder} lack {name}. Download or export the solver again.")
        return self._stored[name]

    def _to_float32(self, name: str, values: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        if name in self._bfloat16:
            return (values.astype(np.uint32) << 16).view(np.float32)
        found = values.astype(np.float32)
        if values.dtype == np.int8:
            found *= self._find(name + SCALE)[chosen].astype(np.float32).reshape(-1, *[1] * (found.ndim - 1))
        return found

    def not_finite(self) -> list[str]:
        """Return the names of tensors with NaN or infinite values."""
        return [name for name in self._stored if not np.isfinite(self[name]).all()]

    def linear(self, prefix: str, bias: bool = True) -> tuple[np.ndarray, np.ndarray | float]:
        """Return matrix `(in, out)` and bias `(out,)` of a linear layer."""
        return np.ascontiguousarray(self[f"{prefix}.weight"].T), self[f"{prefix}.bias"] if bias else 0.0


def quantize_int8(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Round matrices to int8, with scales `(rows,)` named `name.scale`, and other tensors to float16."""
    found: dict[str, np.ndarray] = {}
    for name, values in tensors.items():
        if values.ndim != 2 or values.size < MIN_SIZE:
            found[name] = values.astype(np.float16)
            continue
        values = values.astype(np.float32)
        # Divide by the scale in its stored precision, so that rounding the scale adds no error.
        scale = np.maximum(np.abs(values).max(1) / 127, 1e-7).astype(np.float16)
        found[name] = np.clip(np.rint(values / scale.astype(np.float32)[:, None]), -127, 127).astype(np.int8)
        found[name + SCALE] = scale
    return found


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON file. Raises `UsageError` if the file is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{path} does not exist. Pass the folder of a saved solver.") from error
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({error}). Download or export the solver again.") from error
