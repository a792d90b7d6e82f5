"""Functions that read YAML with OmegaConf: `1e-4` is a number, and repeated keys are errors."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .checks import check_installed
from .usage_error import UsageError


def read_yaml(path: str | Path) -> Any:
    """Parse a YAML file in UTF-8 or UTF-16. `${name}` is not replaced. Raises `UsageError` if the file is missing,
    damaged, repeats a key, or calls a resolver ([`check_no_resolvers`])."""
    # Imported here, so that `hf-mwp --help` needs no package.
    check_installed("omegaconf", f"Reading {path}")
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with open(path, "rb") as file:
            config = OmegaConf.load(file)
        if config:
            content = OmegaConf.to_container(config)
        else:
            # OmegaConf returns an empty mapping for an empty file.
            content = yaml.safe_load(Path(path).read_bytes())
    except FileNotFoundError:
        raise UsageError(f"The file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise UsageError(f"{path} cannot be read as YAML: {error}") from error
    check_no_resolvers(content, str(path))
    return content


def check_no_resolvers(content: Any, source: str, key: str = "") -> None:
    """Raise `UsageError` with the source and the key if a text calls a resolver of OmegaConf, such as
    `${oc.env:HF_TOKEN}`: what it reads could be written to files that are published."""
    for text_key, text in _texts(content, key):
        if _calls_resolver(text):
            fault = f"{text!r:.200} calls a resolver of OmegaConf, which is not allowed. Write the value itself."
            raise UsageError(f"{source}, {text_key}: {fault}")


def _texts(content: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value with their dotted keys (`stages.card.notes`, `list.0`)."""
    if isinstance(content, str):
        yield key, content
        return
    items = ()
    if isinstance(content, Mapping):
        items = content.items()
    elif isinstance(content, list | tuple):
        items = enumerate(content)
    for name, value in items:
        value_key = f"{key}.{name}" if key else str(name)
        yield from _texts(value, value_key)


@cache
def _calls_resolver(text: str) -> bool:
    if "${" not in text:
        return False
    from omegaconf.errors import GrammarParseError
    from omegaconf.grammar_parser import OmegaConfGrammarParser, parse

    try:
        waiting = [parse(text)]
    except GrammarParseError:
        return False  # OmegaConf does not replace anything in a text that it cannot parse.
    while waiting:
        node = waiting.pop()
        if isinstance(node, OmegaConfGrammarParser.InterpolationResolverContext):
            return True
        waiting += getattr(node, "children", None) or ()
    return False


def read_value(text: str) -> Any:
    """Parse a number, list, mapping, quoted string or null as YAML; return any other text unchanged, with its `#`."""
    check_installed("omegaconf", "Reading YAML")
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
    if isinstance(value, str) and stripped[0] not in "'\"|>":
        # YAML would remove comments and line breaks from an unquoted string.
        return stripped
    return value


def parse_mapping(name: str, value: dict | str | None) -> dict | None:
    """Return a mapping option, which is a mapping already or, from the command line, a string in YAML or JSON."""
    if isinstance(value, str):
        value = read_value(value)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"`{name}` must be a mapping of fields in YAML or JSON, got {value!r}.")
    return value
