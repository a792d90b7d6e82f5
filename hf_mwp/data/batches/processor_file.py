"""Tokenizers of processors, read with errors that name what is damaged or missing."""

import json
from os import PathLike
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ...runtime.processor_fields import PROBE, vocabulary_digest
from ...usage_error import OWN_CODE, UsageError


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
    """Digest of what a tokenizer makes of a text, see [`~runtime.processor_fields.vocabulary_digest`]."""
    return vocabulary_digest(tokenizer.get_vocab(), tokenizer(PROBE)["input_ids"])
