"""Reader of `mwp_processor.json` that validates each field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..usage_error import UsageError


FILE_NAME = "mwp_processor.json"
KINDS = {
    "operators": (list,),
    "constants": (list,),
    "language": (str,),
    "parse_number_words": (bool, type(None)),
    "indexed_numbers": (bool,),
    "num_index_tokens": (int,),
    "max_length": (int,),
    # Only for decoders that need more inputs than number positions, or further constants to write expressions.
    "extra_columns": (list,),
    "written_constants": (list,),
    # Missing in folders of the first version.
    "tokenizer_digest": (str, type(None)),
}
# Text that tokenizers with the same vocabulary may split differently: capitals, accents, Chinese, spaces, numbers.
PROBE = "Tom has [NUM0] APPLES,  Zoë's [NUM]; 小明有[NUM1]个苹果， 一共12.5千克？"


def read_fields(path: str | PathLike) -> dict[str, Any]:
    """Return the fields of a processor's file. Raises `UsageError` if the file or a field is invalid."""
    try:
        fields = json.loads(Path(path).read_text("utf-8"))
        missing = [name for name in ("operators", "constants") if name not in fields.keys()]
        fault = f"is not a valid MwpProcessor file (no {missing})" if missing else _wrong_field(fields)
    except (ValueError, AttributeError) as error:
        fault = f"is not a valid MwpProcessor file ({error})"
    if fault is not None:
        raise UsageError(f"{path} {fault}. Save the processor again.")
    return fields


def _wrong_field(fields: dict[str, Any]) -> str | None:
    unknown = [name for name in fields if name not in KINDS]
    if unknown:
        return f"has unknown fields {unknown}, perhaps of a newer version of hf_mwp (known fields: {[*KINDS]})"
    for name, value in fields.items():
        # Compare types exactly, because `bool` is a subclass of `int`.
        if type(value) not in KINDS[name] or type(value) is list and not all(isinstance(each, str) for each in value):
            return f"has the invalid value {value!r} for {name!r}"
    return None


def vocabulary_digest(vocabulary: Mapping[str, int], probe_ids: Sequence[int]) -> str:
    """
    Return a digest of a tokenizer's behaviour: its vocabulary and its ids for `PROBE`. Files are not compared, because
    different library versions write different files for the same tokenizer.
    """
    parts = [sorted(vocabulary.items()), list(probe_ids)]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
