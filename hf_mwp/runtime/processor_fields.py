"""Reading of a processor's file, with errors that name the fault."""

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
    # Only with decoders that read more than positions of numbers, or write with further constants.
    "extra_columns": (list,),
    "written_constants": (list,),
    # Folders of the first version have none.
    "tokenizer_digest": (str, type(None)),
}
# What tokenizers do differently with one vocabulary: capitals, accents, Chinese characters, spaces, placeholders.
PROBE = "Tom has [NUM0] APPLES,  Zoë's [NUM]; 小明有[NUM1]个苹果， 一共12.5千克？"


def read_fields(path: str | PathLike) -> dict[str, Any]:
    """Return the fields of a processor's file; `UsageError` if it is damaged, or has unknown or wrong fields."""
    try:
        fields = json.loads(Path(path).read_text("utf-8"))
        missing = [name for name in ("operators", "constants") if name not in fields.keys()]
        fault = f"is no file of MwpProcessor (no {missing})" if missing else _wrong_field(fields)
    except (ValueError, AttributeError) as error:
        fault = f"is no file of MwpProcessor ({error})"
    if fault is not None:
        raise UsageError(f"{path} {fault}; save the processor again")
    return fields


def _wrong_field(fields: dict[str, Any]) -> str | None:
    unknown = [name for name in fields if name not in KINDS]
    if unknown:
        return f"has fields that this version of hf_mwp does not know, {unknown}: upgrade hf_mwp (it knows {[*KINDS]})"
    for name, value in fields.items():
        # True is an `int` to Python.
        if type(value) not in KINDS[name] or type(value) is list and not all(isinstance(each, str) for each in value):
            return f"cannot have {value!r} as {name!r}"
    return None


def vocabulary_digest(vocabulary: Mapping[str, int], probe_ids: Sequence[int]) -> str:
    """
    Return a digest of how a tokenizer reads texts: of its vocabulary and its ids of `PROBE`. Not of its files, which
    the same tokenizer writes differently in other versions of the libraries.
    """
    parts = [sorted(vocabulary.items()), list(probe_ids)]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
