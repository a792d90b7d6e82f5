"""Stages of a recipe: a command with its options, inputs and output folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any

import yaml

from hf_mwp.commands.options.parsing import read_options
from hf_mwp.commands.options.stages import STAGES, options_of, trains, types_of
from hf_mwp.solver.data.sources import LOADERS, split_name
from hf_mwp.utils.checks import as_list
from hf_mwp.utils.files import content_digest, write_atomically
from hf_mwp.utils.job import Job
from hf_mwp.utils.option import affects_result, default_of, option_values
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.version import __version__


OPTIONS = "stage.yaml"
Commands = Mapping[str, Callable[[list[str]], int]]
# Version of the commands' results. A new version makes all old stages incomplete.
VERSION = 3


@dataclass(frozen=True)
class StageResult:
    """Result of a stage: its wall time, whether it was complete before, and the content of its `metrics.json`."""

    stage: Stage
    seconds: float
    skipped: bool
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Stage of a recipe: a command of `hf-mwp`, its options, and the folder of its result."""

    name: str  # within the recipe
    command: str
    options: Mapping[str, Any]  # other stages are replaced by their folders
    inputs: tuple[Stage, ...] = ()  # stages whose folders are among the options
    job: Job = Job(Path(), {})  # depends on [`stage_inputs`]

    @property
    def folder(self) -> Path:
        """Folder that the command writes."""
        return self.job.path

    @property
    def fingerprint(self) -> str:
        """Digest of options and inputs."""
        return self.job.fingerprint

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the stages whose results are needed."""
        return tuple(stage.name for stage in self.inputs)

    @property
    def is_done(self) -> bool:
        """Return whether the stage is complete."""
        return self.job.is_done

    @property
    def _all_options(self) -> dict[str, Any]:
        return {**self.options, "output_dir": str(self.folder)}

    def check(self) -> None:
        """Raise `UsageError` if an option is wrong, or a model, dataset or file that no stage makes is missing."""
        if self.command not in STAGES:
            fault = f"{self.command!r} cannot be a stage. Choose one of: {', '.join(STAGES)}."
            raise UsageError(f"Stage {self.name!r}: {fault}")
        for name, variable in (("hub_token", "HF_TOKEN"), ("llm_api_key", "LLM_API_KEY")):
            if name in self.options:
                raise UsageError(f"stage {self.name}: {name} would be written to a file. Set {variable} instead.")
        types = types_of(self.command, self.options.get("task"))
        values = option_values(*read_options(f"stage {self.name}", types, self._all_options))
        locate = _locator(self.command, values, [str(stage.folder) for stage in self.inputs])
        for option, value in values.items():
            try:
                for item in as_list(value):
                    locate(option, item)
            except ValueError as error:
                raise UsageError(f"stage {self.name}: key {option!r}: {str(error).removesuffix('.')}.") from None

    def run(self, commands: Commands) -> StageResult:
        """Run the command, from its checkpoint, unless the stage is complete; wait if another run executes it."""

        def work() -> None:
            path = self.folder / OPTIONS
            write_atomically(path, yaml.safe_dump(self._all_options, allow_unicode=True, sort_keys=False))
            arguments = ["--config", str(path)]
            if self.job.checkpoint is not None and not self.options.get("save_only_model"):
                arguments.append("--resume")
            elif self.job.is_begun and "overwrite" in options_of(self.command):
                # Only this stage uses the folder, so the files of an interrupted start are replaced.
                arguments.append("--overwrite")
            commands[self.command](arguments)

        details = {"stage": self.name, "command": f"hf-mwp {self.command}", "needs": list(self.needs)}
        skipped = not self.job.run(work, details)
        return StageResult(self, self.job.record["seconds"], skipped, self.job.metrics)


def stage_inputs(
    command: str, options: Mapping[str, Any], made: Mapping[str, str], launch: str | None = None
) -> dict[str, Any]:
    """Return what determines a stage's result, for its [`Job`]: command, `launch`, options except
    `affects_result=False`, and the contents of the stages (`made`: fingerprints by folder), files, folders and
    datasets in these options."""
    fields = options_of(command, options.get("task"))
    values: dict[str, Any] = {}
    for name, field_ in fields.items():
        default = default_of(field_)
        # A default dataset is treated like a given one.
        if field_.metadata.get("locate") is not None and isinstance(default, str) and default in LOADERS:
            values[name] = default
    values |= options
    contents = _OptionContents(fields, made, values.get("data_dir"), _locator(command, values, made))
    described_options = {}
    for name, value in values.items():
        if name != "data_dir" and (name not in fields or affects_result(fields[name])):
            described_options[name] = contents.describe(name, value)
    if "data_dir" in values and not contents.has_files_of_data_dir:
        described_options["data_dir"] = contents.describe("data_dir", contents.data_dir)
    content = {"command": command, "options": described_options, "version": [__version__, VERSION]}
    if launch is not None and trains(command):
        content["launch"] = launch
    return content


@dataclass
class _OptionContents:
    """Description of options by the contents of the stages, files, folders and datasets that they name."""

    fields: Mapping[str, Field]
    made: Mapping[str, str]  # fingerprints of stages by their folders
    data_dir: str | None
    locate: Callable[[str, Any], Path | None]
    has_files_of_data_dir: bool = False

    def describe(self, name: str, value: Any) -> Any:
        """Return the value of an option with contents in place of names."""
        if isinstance(value, Mapping):
            return {str(key): self.describe(name, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.describe(name, item) for item in value]
        # An option with `choices` names no file, even if there is one of that name.
        if not isinstance(value, str) or (name in self.fields and self.fields[name].metadata.get("choices")):
            return _number(value)
        path = None
        with suppress(ValueError):
            path = self.locate(name, value)
        if path is not None:
            return self._describe_source(value, path)
        return self._describe_text(value)

    def _describe_source(self, value: str, path: Path) -> dict[str, Any]:
        """Return the content of the model, dataset or file that an option names."""
        if self.data_dir is not None and path.resolve().is_relative_to(Path(self.data_dir).resolve()):
            self.has_files_of_data_dir = True
        source = path.suffix if path.is_file() else ""
        if split_name(value)[0] in LOADERS:
            source = value
        return {"source": source, "content": content_digest(path)}

    def _describe_text(self, value: str) -> Any:
        """Return a text with fingerprints in place of the folders of stages, or the content of the path that it is."""
        for folder, digest in self.made.items():
            value = value.replace(folder, digest)
        # A path may have a prefix: `ltp:FOLDER`. `Path.exists` would raise an error for a long string.
        prefix, _, path = value.rpartition(":")
        if path and os.path.exists(value):
            return {"content": content_digest(value)}
        if prefix and os.path.exists(path):
            return {prefix: content_digest(path)}
        return _number(value)


def _locator(
    command: str, values: Mapping[str, Any], stage_folders: Collection[str]
) -> Callable[[str, Any], Path | None]:
    """Return a function that finds the path named by the value of an option, if it is not in a stage's folder."""
    fields = options_of(command, values.get("task"))

    def is_in_stage(value: Any) -> bool:
        return any(folder in str(value) for folder in stage_folders)

    data_is_in_stage = is_in_stage(values.get("data_dir"))
    outside_values = {name: None if is_in_stage(value) else value for name, value in values.items()}

    def locate(name: str, value: Any) -> Path | None:
        locate_option = fields[name].metadata.get("locate") if name in fields else None
        if locate_option is None or not isinstance(value, str) or is_in_stage(value) or data_is_in_stage:
            return None
        return locate_option(value, outside_values)

    return locate


def _number(value: Any) -> Any:
    """Convert numbers, also strings such as `"2e-4"`, to `float`, and return other values unchanged."""
    if value is None or isinstance(value, bool):
        return value
    try:
        return float(value)
    except (ValueError, OverflowError, TypeError):
        return value
