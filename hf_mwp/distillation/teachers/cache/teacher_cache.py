"""Cache of a frozen teacher's outputs on disk."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors.numpy import save
from torch import Tensor

from ....store.row_store import RowStore, StoreError
from .output_layout import OutputLayout


DTYPES = {"F16": np.float16, "F32": np.float32, "I32": np.int32}
CacheError = StoreError
"""Error for a folder that does not contain the expected cache."""


class TeacherCache(RowStore):
    """
    Cache of a frozen teacher's outputs for the rows of a dataset, which are computed once instead of in every epoch.

    Rows are found by their keys (see `row_key` in `fingerprints.py`). The values of a row are stored without padding,
    in the safetensors format: in fp16, or in fp32 for rows with a value too large for fp16. Arguments are as in
    [`~store.RowStore`]. Raises `CacheError` if the folder belongs to a different cache, or its manifest cannot be
    read.
    """

    made_by = "a different teacher, dataset or collator"
    remedy = "choose a different `teacher_cache_dir`"

    @property
    def layout(self) -> OutputLayout | None:
        """Return the layout of a row, or `None` while the cache is empty."""
        return OutputLayout(**self.about["layout"]) if self.about else None

    def read(self, keys: Sequence[bytes]) -> list[dict[str, np.ndarray]]:
        """
        Return the rows of the keys in the form of [`OutputLayout.pack`]. Raises `CacheError` if a row is missing.
        """
        numbers = self.find(keys).tolist()
        if -1 in numbers:
            raise CacheError(
                f"{self.folder} has no example {numbers.index(-1)} of the batch: the dataset returns different rows "
                "than at the start of training. Rows that change (augmentation, cropping) cannot be cached: set "
                "`cache_teacher_outputs=False`."
            )
        return [_arrays_of(memoryview(row["outputs"])) for row in self.rows(numbers, ["outputs"])]

    def assemble(self, keys: Sequence[bytes], inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the rows of the keys as padded tensors for the batch `inputs`, see [`OutputLayout.assemble`]."""
        return self.layout.assemble(self.read(keys), inputs)

    def fill(
        self,
        layout: OutputLayout,
        made_from: Mapping[str, Any],
        batches: Iterable[tuple[Sequence[bytes], Sequence[Mapping[str, np.ndarray]]]],
    ) -> None:
        """
        Add batches of keys and rows of [`OutputLayout.pack`]. The caller holds the cache's lock. The content of the
        fingerprint, `made_from`, is written to the manifest for human readers.
        """
        import pyarrow

        schema = pyarrow.schema({"key": pyarrow.binary(16), "outputs": pyarrow.binary()})
        with self.writing(schema, {"made_from": made_from, "layout": asdict(layout)}):
            for keys, rows in batches:
                # `save` reads the memory of an array as if it were contiguous.
                rows = [{name: np.ascontiguousarray(array) for name, array in row.items()} for row in rows]
                self.append({"key": keys, "outputs": list(map(save, rows))})


def _arrays_of(row: memoryview) -> dict[str, np.ndarray]:
    """Return the arrays in the safetensors format like `safetensors.numpy.load`, which would copy the row twice."""
    start = 8 + int.from_bytes(row[:8], "little")
    arrays = {}
    for name, each in json.loads(bytes(row[8:start])).items():
        first, end = each["data_offsets"]
        values = np.frombuffer(row[start + first : start + end], DTYPES[each["dtype"]])
        arrays[name] = values.reshape(each["shape"])
    return arrays
