"""YAML as OmegaConf reads it: `1e-4` is a number, and repeated keys are errors."""

from pathlib import Path
from typing import Any

import yaml

from ..usage_error import UsageError


def read_yaml(path: str | Path) -> Any:
    """Parse a YAML file; `UsageError` if it is missing, is not YAML, or repeats a key in a mapping."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        config = OmegaConf.load(path)
        # OmegaConf returns an empty mapping for an empty file.
        return OmegaConf.to_container(config) if config else yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise UsageError(f"{path} cannot be read as YAML: {error}") from error


def read_value(text: str) -> Any:
    """
    Read a value from the command line. Numbers, lists, mappings, quoted text and nothing (`null`, `~`, empty) are read
    as YAML; any other text is taken literally, with what YAML would treat as a comment.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    stripped = text.strip()
    try:
        value = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]
    except (yaml.YAMLError, OmegaConfBaseException):
        return text
    if value is None:
        return None if stripped in ("", "~", "null", "Null", "NULL") else text
    # YAML drops comments and line breaks of a text without quotes.
    return stripped if isinstance(value, str) and stripped[0] not in "'\"|>" else value
