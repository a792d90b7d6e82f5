"""One step of a recipe: a command with its options and the folder that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..store.files import write_whole
from ..store.finished_folder import FinishedFolder
from ..tasks.commands import options_of
from .stage_inputs import check_stage


OPTIONS = "stage.yaml"
Commands = Mapping[str, Callable[[list[str]], int]]


@dataclass(frozen=True)
class StageResult:
    """Result of a stage: its wall time, whether it was complete before, and the content of its `metrics.json`."""

    stage: Stage
    seconds: float
    skipped: bool
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """A command of `hf-mwp`, its options, and a [`FinishedFolder`] named after both."""

    name: str  # within the recipe
    command: str
    options: Mapping[str, Any]  # with folders in place of other stages
    inputs: tuple[Stage, ...] = ()  # stages whose folders are among the options
    fingerprint: str = ""  # digest of all that the result depends on, see [`fingerprint`]
    folder: Path = field(default_factory=Path)  # that the command fills

    @property
    def finished(self) -> FinishedFolder:
        """The folder, which tells whether it is done, its record and checkpoint."""
        return FinishedFolder(self.folder, self.fingerprint)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the stages it builds on."""
        return tuple(stage.name for stage in self.inputs)

    @property
    def is_done(self) -> bool:
        """Return whether the folder holds the finished stage."""
        return self.finished.is_done

    def check(self) -> None:
        """Check options and inputs before any stage runs; `UsageError` names the stage and the option."""
        options = {**self.options, "output_dir": str(self.folder)}
        check_stage(self.name, self.command, options, [str(stage.folder) for stage in self.inputs])

    def run(self, commands: Commands) -> StageResult:
        """
        Run the command, a function of the arguments of the command line, unless the stage is complete; resume from the
        last checkpoint if there is one. If another run is busy with the stage, wait for it and take its result.
        """
        folder = self.finished

        def work() -> None:
            path = self.folder / OPTIONS
            options = {**self.options, "output_dir": str(self.folder)}
            write_whole(path, yaml.safe_dump(options, allow_unicode=True, sort_keys=False))
            arguments = ["--config", str(path)]
            if folder.checkpoint is not None:
                arguments.append("--resume")
            elif folder.is_begun and "overwrite" in options_of(self.command):
                # The folder is the stage's alone: what an interrupted start left there is replaced.
                arguments.append("--overwrite")
            commands[self.command](arguments)

        told = {"stage": self.name, "command": f"hf-mwp {self.command}", "needs": list(self.needs)}
        skipped = not folder.fill(work, told)
        return StageResult(self, folder.record["seconds"], skipped, folder.metrics)
