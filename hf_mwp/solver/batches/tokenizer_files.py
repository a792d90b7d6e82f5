"""Functions that load and fingerprint tokenizers."""

import json
from os import PathLike
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from hf_mwp.runtime.text_reader import PROBE, vocabulary_digest
from hf_mwp.utils.usage_error import OWN_CODE, UsageError


def load_tokenizer(source: str | PathLike, trust_remote_code: bool = False, **kwargs) -> PreTrainedTokenizerBase:
    """Load a tokenizer with `AutoTokenizer.from_pretrained`. Raises `UsageError` with the name of the file if a file
    is damaged, or if the tokenizer has no words (some classes create such a tokenizer without a vocabulary)."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code, **kwargs)
    except OSError:
        raise
    # For a damaged file, tokenizer classes raise KeyError, ValueError, TypeError or other errors.
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise UsageError(f"The tokenizer {source} {OWN_CODE}.") from error
        raise UsageError(f"The tokenizer {_damage(source, f'{type(error).__name__}: {error}')}") from error
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens) - set(tokenizer.get_added_vocab()):
        raise UsageError(f"The tokenizer {_damage(source, 'it has no words')}")
    return tokenizer


def _damage(source: str | PathLike, reason: str) -> str:
    if Path(source).is_dir():
        for name in ("tokenizer_config.json", "tokenizer.json"):
            try:
                json.loads((Path(source) / name).read_text("utf-8"))
            except (OSError, ValueError) as error:
                reason = f"{name} cannot be read as JSON: {error}"
                break
    reason = reason.strip().splitlines()[0]
    return f"of {source} cannot be used ({reason}). Download tokenizer.json again, or save the tokenizer again."


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the [`~runtime.text_reader.vocabulary_digest`] of a tokenizer."""
    return vocabulary_digest(tokenizer.get_vocab(), tokenizer(PROBE)["input_ids"])
