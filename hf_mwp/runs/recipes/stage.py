"""One step of a recipe: a command with its options and the folder that it fills."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ... import __version__
from ...data.datasets.sources import DEFAULT_DATASET, data_set_name, locate_dataset, locate_part
from ...store.files import content_digest, write_whole
from ...store.process_lock import ProcessLock


# Commands that train, and may be started in several processes.
TRAINING_COMMANDS = ("pretrain", "train", "distill")
# Commands that refuse to replace finished work unless they are told to.
OVERWRITING = (*TRAINING_COMMANDS, "mix", "label", "card")
# Commands that read problems.
PROBLEM_COMMANDS = ("train", "distill", "rerank", "evaluate")
RECORD, OPTIONS, LOCK, START = "stage.json", "stage.yaml", "stage.lock", "stage.start.json"
OWN = (RECORD, OPTIONS, LOCK, f"{LOCK}.holder", START)
# Options that say where something is kept for other runs to use, on which no result depends.
PLACES = ("tag_cache", "teacher_cache_dir", "beams_dir")
# Options that say what is told of a run, on which no result depends either.
TOLD = ("disable_tqdm", "logging_first_step", "report_to", "run_name")
# Options that name data sets and files of problems and texts, which `data_dir` helps to find.
SOURCES = ("dataset", "corpus", "problems", "exclude", "extra_train", "extra_exclude")
VERSION = 2  # of what the commands make of their options: a stage of another one is another stage


@dataclass(frozen=True)
class StageResult:
    """
    What became of a stage.

    Attributes:
        stage ([`Stage`]): The stage.
        seconds (`float`): Wall time of the start that came to its end, and of those before it up to the checkpoints
            that were gone on from.
        skipped (`bool`): Whether it was there already.
        metrics (`dict`): What its `metrics.json` holds; empty without one.
    """

    stage: Stage
    seconds: float
    skipped: bool
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """
    A command of `hf-mwp`, its options, and a folder named after both.

    Args:
        name (`str`): Name within the recipe.
        command (`str`): The command.
        options (`dict`): Its options as its YAML file has them; other stages stand in them as their folders.
        inputs (`tuple[Stage, ...]`): The stages whose folders are among the options.
        fingerprint (`str`): Changes with everything that the result depends on; see [`fingerprint`].
        folder (`Path`): `{name}-{first eight digits of the fingerprint}` in the folder of the recipe.
    """

    name: str
    command: str
    options: Mapping[str, Any]
    inputs: tuple[Stage, ...] = ()
    fingerprint: str = ""
    folder: Path = field(default_factory=Path)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the stages it builds on."""
        return tuple(stage.name for stage in self.inputs)

    def input_at(self, folder: Any) -> Stage | None:
        """The stage it builds on that fills a folder; `None` if that is another one."""
        return next((stage for stage in self.inputs if str(stage.folder) == str(folder)), None)

    @property
    def record(self) -> dict[str, Any] | None:
        """What is written down about the finished stage; `None` if the folder does not hold it."""
        try:
            record = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if record.get("fingerprint") == self.fingerprint else None

    @property
    def is_done(self) -> bool:
        """Whether the folder holds the finished stage."""
        return self.record is not None

    @property
    def metrics(self) -> dict[str, Any]:
        """What `metrics.json` in the folder holds; empty without one."""
        path = self.folder / "metrics.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def write_options(self) -> Path:
        """Writes the options to a file which `hf-mwp {command} --config` reads, and returns its path."""
        path = self.folder / OPTIONS
        options = {**self.options, "output_dir": str(self.folder)}
        write_whole(path, yaml.safe_dump(options, allow_unicode=True, sort_keys=False))
        return path

    @property
    def checkpoint(self) -> str | None:
        """The last complete checkpoint of an interrupted run."""
        from ...trainers.checkpoints import last_complete_checkpoint

        return last_complete_checkpoint(self.folder)

    def run(self, commands: Mapping[str, Callable[[list[str]], int]]) -> StageResult:
        """
        Runs the command unless the folder holds its result already; goes on from the last checkpoint if there is one.
        If another run is busy with this stage, waits for it and takes its result.

        Args:
            commands (`Mapping[str, Callable]`): Functions that take arguments as the command line gives them.
        """
        if not self.is_done:
            with ProcessLock(self.folder / LOCK).held(self._tell_waiting):
                if not self.is_done:
                    return self._run(commands)
        return StageResult(self, self.record["seconds"], skipped=True, metrics=self.metrics)

    def _tell_waiting(self, holder: str) -> None:
        logging.getLogger(__name__).warning("another run is busy with %s: waiting for %s", self.folder, holder)

    def _run(self, commands: Mapping[str, Callable[[list[str]], int]]) -> StageResult:
        arguments = ["--config", str(self.write_options())]
        checkpoint = self.checkpoint
        if checkpoint is not None:
            arguments.append("--resume")
        elif self.command in OVERWRITING and any(each.name not in OWN for each in self.folder.iterdir()):
            # What a start that did not come to its end has left: the folder is the stage's alone.
            arguments.append("--overwrite")
        before, started = self._seconds_until(checkpoint), time.time()
        write_whole(self.folder / START, json.dumps({"started": started, "seconds_before": before}) + "\n")
        commands[self.command](arguments)
        seconds = round(before + time.time() - started, 1)
        record = {
            "stage": self.name,
            "command": f"hf-mwp {self.command}",
            "fingerprint": self.fingerprint,
            "needs": list(self.needs),
            "seconds": seconds,
        }
        write_whole(self.folder / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        return StageResult(self, seconds, skipped=False, metrics=self.metrics)

    def _seconds_until(self, checkpoint: str | None) -> float:
        """How long the starts before this one took to come to the checkpoint that it goes on from."""
        start = self.folder / START
        if checkpoint is None or not start.is_file():
            return 0.0
        last = json.loads(start.read_text(encoding="utf-8"))
        saved = (Path(checkpoint) / "trainer_state.json").stat().st_mtime
        # One that is older than the last start is the one that this start went on from, and there is none after it.
        return last["seconds_before"] + max(0.0, saved - last["started"])


def fingerprint(command: str, options: Mapping[str, Any], inputs: Mapping[str, str], launch: str | None = None) -> str:
    """
    Digest of what a stage's result depends on: the command, its options (but for the places of caches, and what is
    told of a run), the stages it builds on, the contents of the data sets and of the local files and folders that its
    options name, and the version of this package.

    Args:
        command (`str`): The command.
        options (`Mapping[str, Any]`): Its options.
        inputs (`Mapping[str, str]`): Fingerprints of the stages it builds on, by the text that stands for their
            folders among the options.
        launch (`str`, *optional*): The program that starts it if it trains: in two processes a step has twice as many
            examples.
    """

    def described(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): described(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [described(item) for item in value]
        if isinstance(value, str):
            for folder, digest in inputs.items():
                value = value.replace(folder, digest)
            # `os.path.exists` and not `Path.exists`, which fails for a text that is too long for a name.
            if value and os.path.exists(value):
                return {"content": content_digest(value)}
            # `ltp:FOLDER`: a word before the path says what is there.
            kind, _, path = value.partition(":")
            if path and os.path.exists(path):
                return {kind: content_digest(path)}
        return _number(value)

    def described_source(name: str, source: Any) -> Any:
        if isinstance(source, (list, tuple)):
            return [described_source(name, item) for item in source]
        try:
            place = locate_source(name, source, options, inputs)
        except ValueError:
            place = None
        if place is None:
            return described(source)
        # Of a data set its name and part, of a file its kind.
        known = data_set_name(source)
        return {"source": source if known else place.suffix, "content": content_digest(place)}

    content = {name: value for name, value in options.items() if name not in (*PLACES, *TOLD)}
    if command in PROBLEM_COMMANDS:
        content.setdefault("dataset", DEFAULT_DATASET)
    found = {name: described_source(name, content.pop(name)) for name in SOURCES if name in content}
    if found and not is_made(content.get("data_dir"), inputs):
        # What is read of it is known by its content.
        content.pop("data_dir", None)
    content = {"command": command, "options": {**described(content), **found}, "version": [__version__, VERSION]}
    if launch is not None and command in TRAINING_COMMANDS:
        content["launch"] = launch
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def locate_source(name: str, source: Any, options: Mapping[str, Any], inputs: Iterable[str]) -> Path | None:
    """
    The file or folder that a source is read from; `None` if that is for another stage to make, or to find.

    Args:
        name (`str`): The option that names it, one of `SOURCES`.
        source (`str`): A file, or a data set, also with a part.
        options (`Mapping[str, Any]`): The other options of the stage.
        inputs (`Iterable[str]`): The folders of the stages that it builds on.

    Raises:
        [`~data.DataError`]: it is not there.
    """
    near, inputs = options.get("data_dir"), list(inputs)
    if not isinstance(source, str) or is_made(source, inputs) or is_made(near, inputs):
        return None
    if name == "dataset":
        return locate_dataset(source, near)
    if name.startswith("extra_"):
        dataset = options.get("dataset", DEFAULT_DATASET)
        beside = None if is_made(dataset, inputs) else locate_dataset(dataset, near)
        near = beside if beside is None or beside.is_dir() else beside.parent
    return locate_part(source, near)


def is_made(source: Any, inputs: Iterable[str]) -> bool:
    """Whether one of these stages makes what is named."""
    return any(folder in str(source) for folder in inputs)


def _number(value: Any) -> Any:
    """Numbers written in several ways, `2e-4` and `0.0002`, as one: YAML takes the first for a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return value
    try:
        return float(value)
    except (ValueError, OverflowError):
        return value
