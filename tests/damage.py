"""Ways in which a solver's folder gets damaged, or mixed with another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Writes `model.safetensors` anew after `change` has been at its tensors."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def drop_weights(folder: Path, prefix: str) -> None:
    """Takes away the weights whose names begin so."""

    def drop(tensors: dict[str, torch.Tensor]) -> None:
        for name in list(tensors):
            if name.startswith(prefix):
                del tensors[name]

    change_weights(folder, drop)


def change_fields(path: Path, **fields) -> None:
    """Sets fields of a JSON file; `None` is written as null."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


def cut(path: Path, size: int = 100) -> None:
    """Takes the last bytes of a file away, as a copy that was broken off."""
    path.write_bytes(path.read_bytes()[:-size])


def swap_words(folder: Path, one: str, other: str) -> None:
    """Gives two words of a tokenizer each other's ids: as many words, another vocabulary."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    vocabulary = content["model"]["vocab"]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    Tokenizer.from_str(json.dumps(content)).save(str(path))
