"""Upload of a model folder to the Hub."""

import copy
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, ModelInfo, constants
from huggingface_hub.utils import get_token, validate_repo_id
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from hf_mwp.compress.models.lora import has_lora, merge_lora
from hf_mwp.compress.models.mwp_student import save_student_code
from hf_mwp.compress.models.mwp_student.remote_code import FILES
from hf_mwp.compress.pruning import prune
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.encoder import GRAPH
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.solver import EXPORT_RECORD
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import LICENCES, check_links
from hf_mwp.utils.files import read_json, write_json, writing_weights
from hf_mwp.utils.provenance import training_texts_of
from hf_mwp.utils.usage_error import UsageError

from .card_figures import check_card
from .finite_weights import check_finite
from .model_card import CARD, RECORD, ModelFigures, TrainingStage, build_model_card, earlier_metadata, model_record


CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt"),
    *("vocab.txt", "vocab.json", "source_vocab.json", "target_vocab.json", "chat_template.jinja"),
    *("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm", "target.spm"),
)
PUBLISHED = (
    *(CARD, CONFIG, RECORD, *LICENCES, EXPORT_RECORD, GRAPH, *TOKENIZER, *FILES),
    *("use_hf_mwp.py", "cut_model.py", "architecture.py", "slicing.py"),
    *(MwpProcessor.file_name, PlausibilityReranker.file_name, DefaultSearch.file_name, TrainingTexts.file_name),
)
_OWN_NAME = re.compile(r'((?:\bmodel=|from_pretrained\()"|hf download )[^"\n]*?(?="| --local-dir)')


@checked
@dataclass(frozen=True)
class Publication:
    """
    Result of publishing a folder.

    Args:
        repo_id (`str`): Name of the repository.
        files (`Mapping[str, int]`): Size of each file in bytes.
        left_out (`tuple[str, ...]`): Files and folders that were not uploaded.
        figures (`int`): Number of results in the card: rows of its table and entries of its metadata.
        url (`str`, *optional*), commit (`str`, *optional*): Address and id of the commit; `None` after a dry run.
        private (`bool`, *optional*): Whether the repository is private; `None` after a dry run.
    """

    repo_id: str
    files: Mapping[str, int]
    left_out: tuple[str, ...]
    figures: int
    url: str | None = None
    commit: str | None = None
    private: bool | None = None


@checked
def push_solver_to_hub(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    commit_message: str = "Publish with hf_mwp",
    token: str | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
) -> Publication:
    """
    Publish a folder created by `hf-mwp card` or `hf-mwp export`: the card, configuration, weights, processor,
    re-ranker and record, and no other files. Weights become one file in half precision, except of an export.

    All files are uploaded in one commit, which also deletes files of an earlier version that are no longer in the
    folder. To resume an interrupted upload, call the function again: files that the Hub has are not sent again.

    Args:
        folder (`str` or `Path`): Folder with `README.md`, `record.json`, configuration and weights.
        repo_id (`str`): Name of the repository, `"user/name"`. It is created if it does not exist.
        private (`bool`, *optional*): Visibility of a new repository, private if not given. For an existing repository,
            a different visibility is an error.
        revision (`str`, *optional*): Branch to commit to, created if it does not exist; `"main"` if not given.
        commit_message (`str`, *optional*, defaults to `"Publish with hf_mwp"`): First line of the commit message.
        token (`str`, *optional*): Token with write access; by default the token of `hf auth login` or `HF_TOKEN`.
        dry_run (`bool`, *optional*, defaults to `False`): Check and list the files without any request.
        overwrite (`bool`, *optional*, defaults to `False`): Replace a repository that this function did not create.

    Raises:
        UsageError: The card contains figures that are missing in the record, the folder has no card or record, the
            token, network or permission is missing, or the repository has different content or visibility.

    Example:

    ```python
    >>> hf_mwp.push_solver_to_hub("model_cards/mwp-student-3L-gts-math23k", "me/mwp-student", dry_run=True).files
    {'README.md': 5659, 'config.json': 4114, ...}
    ```
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    if repo_id.count("/") != 1:
        raise UsageError(f"`repo_id` must have the form user/name, such as me/student, not {repo_id!r}.")
    validate_repo_id(repo_id)
    for name in (CARD, RECORD):
        if not (folder / name).is_file():
            remedy = f"Create a complete folder with `hf-mwp card --model {folder}`"
            if (folder / EXPORT_RECORD).exists():
                remedy = "Run `hf-mwp card` on the solver, and export the folder that it creates"
            raise UsageError(f"{folder} has no {name}. {remedy}.")
    figures = check_card(folder / CARD, folder / RECORD)
    with TemporaryDirectory() as workspace:
        upload_folder = Path(workspace)
        collect_files(folder, upload_folder)
        card = upload_folder / CARD
        card.write_text(name_in_card(card.read_text("utf-8"), repo_id), "utf-8")
        files = {path.name: path for path in sorted(upload_folder.iterdir())}
        sizes = {name: path.stat().st_size for name, path in files.items()}
        left_out = {path.name for path in folder.iterdir()}
        left_out -= {*files, *weight_files(folder), INDEX}
        publication = Publication(repo_id, sizes, tuple(sorted(left_out)), figures)
        if dry_run:
            return publication
        repository = open_repository(repo_id, private=private, revision=revision, token=token, overwrite=overwrite)
        changes: list[Any] = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
        outdated = sorted(_files_in(repository) - files.keys())
        changes += [CommitOperationDelete(name) for name in outdated]
        with named_errors(repo_id):
            commit = HfApi(token=token).create_commit(
                repo_id, changes, commit_message=commit_message, revision=revision or "main"
            )
    return replace(publication, url=commit.commit_url, commit=commit.oid, private=bool(repository.private))


@checked
def push_trained_model(
    folder: str | Path,
    model: PreTrainedModel,
    repo_id: str,
    *,
    processor: Any = None,
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    metadata: Mapping[str, Any] | None = None,
    token: str | None = None,
    blocking: bool = True,
    **options: Any,
) -> Publication | Future:
    """Publish a copy of a folder saved by a trainer, with the `options` of [`push_solver_to_hub`] and a new record and
    card ([`build_model_card`], with [`earlier_metadata`] of the folder and the given `metadata`). The files are
    collected before the function returns; unless `blocking`, it returns a `Future` of the upload."""
    reading = {}
    if isinstance(processor, MwpProcessor):
        reading = {"language": processor.language, "indexed_numbers": processor.indexed_numbers}
    # The folder has neither the heads that a `HeadPruningCallback` closed nor separate adapters.
    saved = prune(model) if "save_pretrained" in vars(model) else model
    if has_lora(saved):
        saved = merge_lora(copy.deepcopy(saved))
    metadata = earlier_metadata(Path(folder) / CARD) | dict(metadata or {})
    card = build_model_card(saved, repo_id, figures, stages, metadata=metadata, **reading)
    record = model_record(figures, stages, training_texts_of(model))
    workspace = TemporaryDirectory()
    copied = Path(workspace.name)
    # Copied, because the folder may change during the upload.
    collect_files(Path(folder), copied)
    card.save(copied / CARD)
    write_json(copied / RECORD, record)

    def push() -> Publication:
        with workspace:
            return push_solver_to_hub(copied, repo_id, token=token, **options)

    if blocking:
        return push()
    return HfApi(token=token).run_as_future(push)


def collect_files(folder: Path, target: Path) -> None:
    """Copy the files to publish, with weights as one file in half precision (of an export unchanged) and an encoder's
    code. Raises `UsageError` if the configuration or weights are missing or damaged, weights are infinite or NaN, an
    export is incomplete, or a file is a link to a different folder."""
    paths = [folder / name for name in PUBLISHED if (folder / name).is_file()]
    check_links(paths)
    for path in paths:
        shutil.copy(path, target)
    config = read_json(target / CONFIG)
    if config is None:
        raise UsageError(f"{folder / CONFIG} is missing or damaged. Save the model again.")
    for path in target.glob("*.json"):
        if read_json(path) is None:
            raise UsageError(f"{folder / path.name} is damaged. Save the model again.")
    if (folder / EXPORT_RECORD).exists():
        export = read_json(folder / EXPORT_RECORD) or {}
        needed = [WEIGHTS]
        if export.get("format") == "onnx":
            needed.append(GRAPH)
        missing = [name for name in needed if not (folder / name).exists()]
        if missing:
            raise UsageError(f"{folder} is an export without {' and '.join(missing)}. Export the solver again.")
        check_finite(_load_weights(folder, WEIGHTS), folder)
        shutil.copy(folder / WEIGHTS, target)
    else:
        with writing_weights(target):
            save_file(_half_weights(folder), target / WEIGHTS, {"format": "pt"})
        if config.get("model_type") == "mwp_student":
            save_student_code(target)


def weight_files(folder: Path) -> list[str]:
    """Return the names of the weight files in a folder: one file, or all shards."""
    index = read_json(folder / INDEX)
    if index is None:
        return [WEIGHTS]
    weight_map = index.get("weight_map")
    names: set[Any] = {None}
    if isinstance(weight_map, dict):
        names = set(weight_map.values())
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise UsageError(f"{folder / INDEX} is damaged: {name!r} is no file of the folder. Save the model again.")
    return sorted(names)


def _half_weights(folder: Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for name in weight_files(folder):
        weights |= _load_weights(folder, name)
    check_finite(weights, folder)
    for name, value in weights.items():
        if value.is_floating_point():
            weights[name] = value.half()
    check_finite(weights, folder, "half precision")
    return weights


def _load_weights(folder: Path, name: str) -> dict[str, Tensor]:
    check_links([folder / name])
    try:
        return load_file(folder / name)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{folder / name} is missing or damaged ({error}). Save the model again.") from error


def name_in_card(text: str, repo_id: str) -> str:
    """Return the card text with `repo_id` as the model name in its examples."""
    head, title, rest = text.partition("\n## How to use\n")
    usage, next_title, rest = rest.partition("\n## ")
    return head + title + _OWN_NAME.sub(rf"\g<1>{repo_id}", usage) + next_title + rest


def open_repository(
    repo_id: str, *, private: bool | None, revision: str | None, token: str | None, overwrite: bool = False
) -> ModelInfo:
    """Create a repository and branch if they do not exist, and check their content; see [`push_solver_to_hub`]."""
    if token is None and get_token() is None:
        raise UsageError("Publishing needs a token with write access. Run `hf auth login`, or pass `token`.")
    api = HfApi(token=token)
    with named_errors(repo_id):
        repo_id = api.create_repo(repo_id, private=private is not False, exist_ok=True).repo_id
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        info = api.model_info(repo_id, revision=revision)
    if private is not None and info.private is not private:
        visibility = "private" if info.private else "public"
        raise UsageError(
            f"{repo_id} exists and is {visibility}. Change this on its settings page, or choose another name."
        )
    files = _files_in(info)
    if files and RECORD not in files and not overwrite:
        examples = ", ".join(sorted(files)[:3])
        raise UsageError(
            f"{repo_id} exists with different content ({examples}). Choose another name, or set `overwrite`."
        )
    return info


def _files_in(repository: ModelInfo) -> set[str]:
    """Return the names of a repository's files, except the file that every repository has from its creation."""
    names = {sibling.rfilename for sibling in repository.siblings or ()}
    return names - {".gitattributes"}


@contextmanager
def named_errors(repo_id: str) -> Iterator[None]:
    """Convert errors of the Hub and the network to `UsageError`s that say what to do."""
    try:
        yield
    except Exception as error:
        # Network errors are of httpx, or of httpx2 since version 2 of the client.
        if not isinstance(error, OSError | RuntimeError) and not type(error).__module__.startswith("httpx"):
            raise
        cause: BaseException = error
        if isinstance(error, RuntimeError) and error.__cause__ is not None:
            # For large files, the client wraps the error in a RuntimeError.
            cause = error.__cause__
        reason = " ".join(str(cause).split())
        raise UsageError(
            f"The upload of {repo_id} to {constants.ENDPOINT} broke off ({reason}). Run it again, with a token that "
            f"has write access to {repo_id.partition('/')[0]}: uploaded files are not sent twice."
        ) from error
