"""The files of a processor, read with errors that name what is damaged, missing, or another processor's."""

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ...usage_error import OWN_CODE, UsageError


KINDS = {
    "operators": (list,),
    "constants": (list,),
    "language": (str,),
    "parse_number_words": (bool, type(None)),
    "indexed_numbers": (bool,),
    "num_index_tokens": (int,),
    "max_length": (int,),
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


def load_tokenizer(source: str | PathLike, trust_remote_code: bool = False, **kwargs) -> PreTrainedTokenizerBase:
    """
    `AutoTokenizer.from_pretrained` that names the damaged file, and refuses a tokenizer without words, which some
    classes make of a folder without a vocabulary: `OSError` where there is no such folder or repository, `UsageError`
    where a file is missing or damaged. Code in the repository is run only with `trust_remote_code=True`.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code, **kwargs)
    except OSError:
        raise
    # What a damaged file raises differs from class to class: KeyError, ValueError, TypeError, ...
    except Exception as error:
        own_code = "trust_remote_code" in str(error)
        fault = f"{source} {OWN_CODE}." if own_code else _damage(source, f"{type(error).__name__}: {error}")
        raise UsageError(f"The tokenizer {fault}") from error
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens) - set(tokenizer.get_added_vocab()):
        raise UsageError(f"The tokenizer {_damage(source, 'it has no words')}")
    return tokenizer


def _damage(source: str | PathLike, reason: str) -> str:
    for name in ("tokenizer_config.json", "tokenizer.json") if Path(source).is_dir() else ():
        try:
            json.loads((Path(source) / name).read_text("utf-8"))
        except (OSError, ValueError) as error:
            reason = f"{name} cannot be read as JSON: {error}"
            break
    reason = reason.strip().splitlines()[0]
    return f"of {source} cannot be used ({reason}): fetch its tokenizer.json again, or save its tokenizer again"


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """
    Digest of what a tokenizer makes of a text: of its vocabulary and the ids of a sample. Not of its files, which the
    same tokenizer writes differently in other versions of the libraries.
    """
    parts = [sorted(tokenizer.get_vocab().items()), tokenizer(PROBE)["input_ids"]]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
