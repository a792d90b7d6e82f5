"""Cache of a frozen teacher's outputs on disk."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from torch import Tensor

from ....store.row_store import RowStore, StoreError
from .output_layout import INDICES, OutputLayout


CacheError = StoreError
"""Error for a folder that does not contain the expected cache."""


class TeacherCache(RowStore):
    """
    Cache of a frozen teacher's outputs for the rows of a dataset, which are computed once instead of in every epoch.

    Rows are found by their keys (see `row_key` in `fingerprints.py`). Values are stored without padding in fp16, or in
    fp32 for rows with a value too large for fp16. Arguments are as in [`~store.RowStore`]. Raises `CacheError` if the
    folder belongs to a different cache, or its manifest cannot be read.
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
                self.folder,
                f"has no example {numbers.index(-1)} of the batch: the dataset returns different rows than at the "
                "start of training. Rows that change (augmentation, random cropping) cannot be cached: set "
                "`cache_teacher_outputs=False`.",
            )
        layout = self.layout
        return [_numbers_of(layout, row) for row in self.rows(numbers, ["wide", "columns", *layout.names])]

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

        fixed = {"key": pyarrow.binary(16), "wide": pyarrow.bool_(), "columns": pyarrow.int32()}
        schema = pyarrow.schema(fixed | dict.fromkeys(layout.names, pyarrow.binary()))
        with self.writing(schema, {"made_from": made_from, "layout": asdict(layout)}):
            for keys, rows in batches:
                columns = {
                    "key": keys,
                    "wide": [any(array.dtype == np.float32 for array in row.values()) for row in rows],
                    "columns": [row["logits"].shape[1] if "logits" in row else 0 for row in rows],
                }
                self.append(columns | {name: [row[name].tobytes() for row in rows] for name in layout.names})


def _numbers_of(layout: OutputLayout, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
    dtype = np.float32 if row["wide"] else np.float16
    widths = layout.widths
    return {
        name: row[name].view(np.int32 if name == INDICES else dtype).reshape(-1, widths[name] or row["columns"])
        for name in layout.names
    }
