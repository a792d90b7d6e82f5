"""Publishing of a model by its trainer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import HfApi
from transformers import PreTrainedModel

from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_lineage import training_texts_of
from .model_card import RECORD, ModelFigures, TrainingStage, build_model_card, model_record
from .published_files import CARD, PublishedFiles, collect_files
from .push_solver import Publication, push_files


def push_trained_model(
    folder: str | Path,
    model: PreTrainedModel,
    repo_id: str,
    *,
    processor: Any = None,
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    private: bool | None = None,
    revision: str | None = None,
    commit_message: str = "End of training",
    token: str | None = None,
    blocking: bool = True,
) -> Publication | Future:
    """
    Publish the folder that a trainer saved a model to, with the content of [`push_solver_to_hub`]: weights as one file
    in half precision, and a card and record made of the arguments.

    Args:
        folder (`str` or `Path`), model (`PreTrainedModel`), repo_id (`str`): Saved folder, the model in it, and
            repository.
        processor (`Any`, *optional*): The model's processor or tokenizer, whose language the card states.
        figures (`Sequence[ModelFigures]`, *optional*), stages (`Sequence[TrainingStage]`, *optional*): Measurements
            and training of the model.
        private, revision, commit_message, token: As in [`push_solver_to_hub`].
        blocking (`bool`, *optional*, defaults to `True`): Whether to wait for the end of the upload. The files are
            collected before the function returns in both cases.

    Returns:
        [`Publication`], or a `Future` of one.

    Raises:
        UsageError: as [`push_solver_to_hub`].
    """
    reads = {}
    if isinstance(processor, MwpProcessor):
        reads = {"language": processor.language, "indexed_numbers": processor.indexed_numbers}
    card = build_model_card(model, repo_id, figures, stages, **reads)
    record = json.dumps(model_record(figures, stages, training_texts_of(model)), indent=1, ensure_ascii=False)
    workspace = TemporaryDirectory()
    made = {CARD: card.content, RECORD: record + "\n"}
    found = collect_files(Path(folder), Path(workspace.name), repo_id, made)
    if not blocking:
        # The folder may be written to while the upload waits.
        copies = Path(workspace.name, "copies")
        copies.mkdir()
        files = {name: Path(shutil.copy(path, copies)) for name, path in found.files.items()}
        found = PublishedFiles(files, found.left_out)

    def push() -> Publication:
        with workspace:
            options = {"private": private, "revision": revision, "token": token}
            return push_files(found, repo_id, commit_message=commit_message, **options)

    return push() if blocking else HfApi(token=token).run_as_future(push)
