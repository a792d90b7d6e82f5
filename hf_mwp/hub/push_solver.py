"""Publishing of a model's folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from transformers import PreTrainedModel

from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_lineage import training_texts_of
from ..usage_error import UsageError
from .card_figures import check_card
from .model_card import RECORD, ModelFigures, TrainingStage, build_model_card, model_record
from .published_files import CARD, PublishedFiles, collect_files


# Files that every repository has from its creation.
OF_THE_HUB = ".gitattributes"


@dataclass(frozen=True)
class Publication:
    """
    A published folder.

    Args:
        repo_id (`str`): Name of the repository.
        files (`Mapping[str, int]`): Bytes of each of its files.
        left_out (`tuple[str, ...]`): Files and folders that were not uploaded.
        figures (`int`): Number of figures in the card.
        url (`str`, *optional*), commit (`str`, *optional*): Address and id of the commit; none of a dry run.
        private (`bool`, *optional*): Whether the repository is private; not known of a dry run.
    """

    repo_id: str
    files: Mapping[str, int]
    left_out: tuple[str, ...]
    figures: int
    url: str | None = None
    commit: str | None = None
    private: bool | None = None


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
    Publish the folder that `hf-mwp card` made (of a solver, encoder or classifier) or `hf-mwp export`: its card,
    configuration, weights as one file in half precision, processor, re-ranker and record, and nothing else.

    All goes up in one commit, so that a repository is never half a model. An upload that broke off resumes when the
    function is called again: files that the Hub has are not sent again, and without a change there is no new commit.
    Files of an earlier version that the folder no longer has are deleted.

    Args:
        folder (`str` or `Path`): Folder with `README.md`, `record.json`, configuration and weights.
        repo_id (`str`): Name of the repository, `"user/name"`. It is created if it does not exist.
        private (`bool`, *optional*): Visibility of a new repository, private if not given. An existing one keeps its
            visibility, and another one given here is an error.
        revision (`str`, *optional*): Branch to commit to, created if it does not exist; `"main"` if not given.
        commit_message (`str`, *optional*): First line of the commit.
        token (`str`, *optional*): Token with write access; that of `hf auth login` or `HF_TOKEN` if not given.
        dry_run (`bool`, *optional*, defaults to `False`): Check and list the files without any request.
        overwrite (`bool`, *optional*, defaults to `False`): Replace the content of a repository that was not made
            by this function.

    Returns:
        [`Publication`]: the files, and where they are.

    Raises:
        UsageError: a card with figures that the record has not, a folder without card or record, no token, no network
            or no permission, an existing repository with other content or of another visibility.

    Example:

    ```python
    >>> hf_mwp.push_solver_to_hub("model_cards/mwp-student-3L-gts-math23k", "me/mwp-student", dry_run=True).files
    {'README.md': 5659, 'config.json': 4114, ...}
    ```
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    with TemporaryDirectory() as workspace:
        found = collect_files(folder, Path(workspace), repo_id)
        options = {"private": private, "revision": revision, "token": token, "overwrite": overwrite}
        return push_files(found, repo_id, commit_message=commit_message, dry_run=dry_run, **options)


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


def push_files(
    found: PublishedFiles,
    repo_id: str,
    *,
    private: bool | None,
    revision: str | None,
    commit_message: str,
    token: str | None,
    dry_run: bool = False,
    overwrite: bool = False,
) -> Publication:
    """Check and upload collected files; see [`push_solver_to_hub`]."""
    if repo_id.count("/") != 1:
        raise UsageError(f"`repo_id` must be a user or organization and a name, as in me/student, not {repo_id!r}.")
    figures = check_card(found.files[CARD], found.files[RECORD])
    publication = {"repo_id": repo_id, "files": found.sizes, "left_out": found.left_out, "figures": figures}
    if dry_run:
        return Publication(**publication)
    repository = open_repository(repo_id, private=private, revision=revision, token=token, overwrite=overwrite)
    changes: list[Any] = [CommitOperationAdd(name, str(path)) for name, path in sorted(found.files.items())]
    changes += [CommitOperationDelete(name) for name in sorted(repository.files - found.files.keys())]
    with named_errors(repo_id):
        commit = HfApi(token=token).create_commit(
            repo_id, changes, commit_message=commit_message, revision=revision or "main"
        )
    return Publication(**publication, url=commit.commit_url, commit=commit.oid, private=repository.private)


@dataclass(frozen=True)
class Repository:
    """Full name, visibility and files of a repository that may be written to."""

    repo_id: str
    private: bool
    files: frozenset[str]


def open_repository(
    repo_id: str, *, private: bool | None, revision: str | None, token: str | None, overwrite: bool = False
) -> Repository:
    """Create a repository and branch unless they exist, and check them; see [`push_solver_to_hub`]."""
    if token is None and get_token() is None:
        raise UsageError("Publishing needs a token with write access. Run `hf auth login`, set HF_TOKEN or pass one.")
    api = HfApi(token=token)
    with named_errors(repo_id):
        repo_id = api.create_repo(repo_id, private=private is not False, exist_ok=True).repo_id
        info = api.model_info(repo_id)
        if private is not None and info.private is not private:
            kind, other = ("private", "public") if info.private else ("public", "private")
            raise UsageError(
                f"{repo_id} exists and is {kind}. Change that on its settings page, or publish {other} under another "
                "name."
            )
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
            info = api.model_info(repo_id, revision=revision)
    files = frozenset(each.rfilename for each in info.siblings or ()) - {OF_THE_HUB}
    if files and RECORD not in files and not overwrite:
        raise UsageError(
            f"{repo_id} exists and holds something else ({', '.join(sorted(files)[:3])}). Choose another name, or "
            "replace its content with `overwrite`."
        )
    return Repository(repo_id, bool(info.private), files)


@contextmanager
def named_errors(repo_id: str) -> Iterator[None]:
    """Within it, errors of the Hub and of the network are a `UsageError` that says what to do."""
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise UsageError("Publishing needs the Hub, and HF_HUB_OFFLINE=1 forbids it: unset that variable.") from error
    except HfHubHTTPError as error:
        raise _refusal(error, repo_id) from error
    except Exception as error:
        # The client raises a RuntimeError for a large file, and for the network an OSError or an error of httpx
        # (httpx2 since version 2 of the client).
        cause = error.__cause__ or error if isinstance(error, RuntimeError) else error
        is_known = isinstance(cause, OSError | RuntimeError) or type(cause).__module__.startswith("httpx")
        if not is_known:
            raise
        raise _broken_off(cause) from error


def _refusal(error: HfHubHTTPError, repo_id: str) -> UsageError:
    status = error.response.status_code
    if status in (401, 403, 404):
        return UsageError(
            f"The Hub does not let this token write to {repo_id} (status {status}). Use one with write access to "
            f"{repo_id.partition('/')[0]}, see `hf auth whoami`."
        )
    if status < 500 and status not in (408, 429):
        return UsageError(f"The Hub refused {repo_id} (status {status}): {' '.join(str(error).split())}")
    return _broken_off(error)


def _broken_off(error: Exception) -> UsageError:
    told = " ".join(str(error).split())
    return UsageError(
        f"The upload to {constants.ENDPOINT} broke off ({told}). Run it again: files that arrived are not sent twice."
    )
