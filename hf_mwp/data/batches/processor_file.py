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
    """The fields of a processor's file; `UsageError` if it is damaged or has unknown fields or types."""
    try:
        fields = json.loads(Path(path).read_text("utf-8"))
        missing = [name for name in ("operators", "constants") if name not in fields.keys()]
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{path} is no file of MwpProcessor ({error}); save the processor again") from error
    if missing:
        raise UsageError(f"{path} is no file of MwpProcessor (no {missing}); save the processor again")
    unknown = [name for name in fields if name not in KINDS]
    if unknown:
        raise UsageError(
            f"{path} has fields that this version of hf_mwp does not know, {unknown}: upgrade hf_mwp, or save the "
            f"processor again with this one (it knows {list(KINDS)})"
        )
    for name, value in fields.items():
        # True is an `int` to Python.
        fits = type(value) in KINDS[name] and (type(value) is not list or all(isinstance(each, str) for each in value))
        if not fits:
            raise UsageError(f"{path}: {name!r} cannot be {value!r}; save the processor again")
    return fields


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
        fault = f"The tokenizer {source} {OWN_CODE}." if "trust_remote_code" in str(error) else _damage(source, error)
        raise UsageError(fault) from error
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens) - set(tokenizer.get_added_vocab()):
        raise UsageError(_damage(source))
    return tokenizer


def _damage(source: str | PathLike, error: Exception | None = None) -> str:
    reason = "it has no words" if error is None else f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    for name in ("tokenizer_config.json", "tokenizer.json"):
        path = Path(source) / name
        if Path(source).is_dir() and not path.exists() and name == "tokenizer.json":
            reason = f"{name} is missing"
        elif path.exists():
            try:
                json.loads(path.read_text("utf-8"))
            except ValueError as damage:
                reason = f"{name} is no JSON: {damage}"
                break
            if name == "tokenizer.json":
                reason = f"{name}: {reason}"
    return f"the tokenizer of {source} cannot be used ({reason}): fetch the folder again, or save its tokenizer again"


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """
    Digest of what a tokenizer makes of a text: of its vocabulary and the ids of a sample. Not of its files, which the
    same tokenizer writes differently in other versions of the libraries.
    """
    parts = [sorted(tokenizer.get_vocab().items()), tokenizer(PROBE)["input_ids"]]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
