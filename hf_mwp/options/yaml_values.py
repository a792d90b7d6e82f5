"""Functions that read YAML with OmegaConf: `1e-4` is a number, and repeated keys are errors."""

from pathlib import Path
from typing import Any

from ..usage_error import UsageError


def read_yaml(path: str | Path) -> Any:
    """Parse a YAML file in UTF-8 or UTF-16. Raises `UsageError` if it is missing, damaged, or repeats a key."""
    # Imported here, so that `hf-mwp --help` needs no package.
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with open(path, "rb") as file:
            config = OmegaConf.load(file)
        # OmegaConf returns an empty mapping for an empty file.
        return OmegaConf.to_container(config) if config else yaml.safe_load(Path(path).read_bytes())
    except FileNotFoundError:
        raise UsageError(f"The file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise UsageError(f"{path} cannot be read as YAML: {error}") from error


def read_value(text: str) -> Any:
    """Parse a number, list, mapping, quoted string or null as YAML; return any other text unchanged, with its `#`."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    stripped = text.strip()
    try:
        value = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]
    except (yaml.YAMLError, OmegaConfBaseException):
        return text
    if value is None:
        return None if stripped in ("", "~", "null", "Null", "NULL") else text
    # YAML would remove comments and line breaks from an unquoted string.
    return stripped if isinstance(value, str) and stripped[0] not in "'\"|>" else value


def parse_mapping(name: str, value: dict | str | None) -> dict | None:
    """Return a mapping option, which is a mapping already or, from the command line, a string in YAML or JSON."""
    value = read_value(value) if isinstance(value, str) else value
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"`{name}` must be a mapping of fields in YAML or JSON, got {value!r}.")
    return value
