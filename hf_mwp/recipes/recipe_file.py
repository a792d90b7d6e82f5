"""Functions that read the YAML files of recipes and merge them into their bases."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..options.yaml_values import read_yaml
from ..usage_error import UsageError


KEYS = ("recipe", "budget", "variables", "stages", "budgets", "targets", "search")


class RecipeError(UsageError):
    """Error in a recipe. The message contains the file and the key."""


def unknown_name(name: object, known: Iterable[object], kind: str) -> str | None:
    """Return the error message for an unknown name, with a similar name, or `None` if the name is known."""
    names = [str(each) for each in known]
    if str(name) in names:
        return None
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names) or 'none'}."
    return f"unknown {kind} {str(name)!r}. {hint}"


def read_recipe(path: str | Path, base: str | Path | None = None, _above: tuple[Path, ...] = ()) -> Any:
    """Read a recipe, merged into its base or into `base`. Raises `RecipeError` if a file is wrong."""
    from omegaconf import OmegaConf

    path = Path(path)
    try:
        content = read_yaml(path)
    except UsageError as error:
        raise RecipeError(str(error)) from error
    if not isinstance(content, Mapping) or content.get("base") is None:
        if base is not None:
            raise RecipeError(f"{path} has no `base`, so {base} cannot replace it.")
        return content
    if path.resolve() in _above:
        raise RecipeError(f"{_above[0]}: its `base` is circular, it leads back to {path}.")
    place = path.parent / str(content["base"]) if base is None else Path(base).resolve()
    below = read_recipe(place, None, (*_above, path.resolve()))
    if not isinstance(below, Mapping) or not below.keys() & set(KEYS):
        raise RecipeError(f"{path}: its `base` {content['base']} is not a valid recipe.")
    own = {key: value for key, value in content.items() if key != "base"}
    try:
        return OmegaConf.to_container(OmegaConf.merge(below, own))
    except TypeError as error:
        fault = f"{path}: a list and a mapping cannot be merged ({error}). Compare the file with its base."
        raise RecipeError(fault) from error
