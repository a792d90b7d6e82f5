"""A model's folder as the Hub gets it."""

from __future__ import annotations

import copy
import json
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard
from transformers import PreTrainedModel

from ..data.training_lineage import write_training_texts


# Larger files than this are split, so that each of them stays under the limits of ordinary git hosting.
MAX_SHARD_SIZE = "22MB"


def write_model_folder(
    model: PreTrainedModel,
    folder: str | PathLike,
    card: ModelCard | None = None,
    processor: Any = None,
    dtype: torch.dtype = torch.float16,
) -> None:
    """
    Writes weights, configuration, processor, digests of what the model was trained on (as far as that is known, see
    [`~data.TrainingTexts`]) and card to a folder that `from_pretrained` loads and the Hub takes as it is.

    Args:
        model (`PreTrainedModel`):
            The model; it is not changed.
        folder (`str` or `PathLike`):
            Where to; made if it is not there.
        card (`ModelCard`, *optional*):
            Written as `README.md`.
        processor (`Any`, *optional*):
            Anything with `save_pretrained`.
        dtype (`torch.dtype`, *optional*, defaults to `torch.float16`):
            In which the weights are stored: half precision halves the download. The configuration keeps the model's
            own dtype, in which they are loaded.
    """
    folder = Path(folder)
    stored = copy.deepcopy(model).to(dtype)
    # A processor comes first: its tokenizer may write files of the same names as the model's.
    if processor is not None:
        processor.save_pretrained(folder)
    write_training_texts(model, folder)
    stored.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)
    _set_dtype(folder / "config.json", model.dtype)
    if card is not None:
        card.save(folder / "README.md")


def _set_dtype(path: Path, dtype: torch.dtype) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    name = str(dtype).removeprefix("torch.")
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        if "dtype" in part:
            part["dtype"] = name
    path.write_text(json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
