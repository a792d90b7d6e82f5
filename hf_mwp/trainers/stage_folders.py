"""What loops over models have in common: folders that tell what they depend on, filled by all processes together."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel

from ..distillation.objectives import Objective
from ..distillation.teachers.cache.fingerprint import describe_collator, hash_processing, row_key
from ..options.option import WITHOUT_EFFECT
from ..store.finished_folder import FinishedFolder, digest_of
from .base_config import BaseConfig
from .distillation.default_objectives import show_attention


def describe_training(
    args: BaseConfig,
    data: Mapping[str, Any],
    methods: Iterable[Any],
    free: Collection[str] = (),
) -> str:
    """
    A fingerprint of what all trainings of a loop depend on: arguments, data, methods; not their models.

    Args:
        args ([`BaseConfig`]): The arguments of the loop.
        data (`Mapping[str, Any]`): What trainers are given as `train_dataset`, `eval_dataset`, `data_collator` and
            `processing_class`.
        methods (`Iterable`): Objects that say how is trained, such as objectives.
        free (`Collection[str]`, *optional*): Arguments that count for the loop alone.
    """
    ignored = WITHOUT_EFFECT | {*free}
    options = {name: value for name, value in args.to_dict().items() if name not in ignored}
    rows = digest_of_rows({part: data[part] for part in ("train_dataset", "eval_dataset")})
    collator, processing = describe_collator(data["data_collator"]), hash_processing(data["processing_class"])
    return digest_of([options, rows, collator, processing, [describe_collator(each) for each in methods]])


def digest_of_rows(parts: Mapping[str, Iterable[Any] | None]) -> str:
    """A fingerprint of data sets by their names."""
    digest = hashlib.blake2b(digest_size=16)
    for part, rows in parts.items():
        digest.update(part.encode())
        for row in rows if rows is not None else ():
            digest.update(row_key(row))
    return digest.hexdigest()


def fill_together(folder: FinishedFolder, work: Callable[[], None], args: BaseConfig) -> None:
    """
    Fills a folder in all processes of a training alike; the first one holds it. [`UsageError`] if it is filled with
    something else.
    """
    folder.check_own()
    done, state = folder.is_done, args.distributed_state
    if state is not None:
        state.wait_for_everyone()
    if state is None or state.is_main_process:
        folder.fill(work)
    elif not done:
        work()
    if state is not None:
        state.wait_for_everyone()


def own_objectives(objectives: Sequence[Objective], *models: PreTrainedModel) -> list[Objective]:
    """Objectives for one training, which plans them; its models show what these read."""
    show_attention(objectives, *models)
    return copy.deepcopy(list(objectives))


__all__ = ["describe_training", "digest_of_rows", "fill_together", "own_objectives"]
