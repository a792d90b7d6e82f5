"""One step of a recipe: a command with its options and the folder that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..store.files import write_whole
from ..store.finished_folder import FinishedFolder
from ..tasks.accuracy_cells import percent
from .commands import options_of
from .stage_inputs import check_stage


OPTIONS = "stage.yaml"


@dataclass(frozen=True)
class StageResult:
    """What became of a stage."""

    stage: Stage
    # Wall time of the start that came to its end, and of those before it up to the checkpoints that were gone on from.
    seconds: float
    skipped: bool  # it was there already
    metrics: dict[str, Any]  # what its `metrics.json` holds; empty without one

    @property
    def headline(self) -> str:
        """The figures that a reader asks for first."""
        metrics = self.metrics
        fates = metrics.get("fates", {})
        shown = [f"{fates['labelled']:,} labelled"] if "labelled" in fates else []
        for part, shares in metrics.get("reranking", {}).items():
            shown.append(f"{part} {percent(shares['without'])} to {percent(shares['with'])} %")
        for part in ("validation", "test"):
            section = metrics.get(part)
            if not isinstance(section, Mapping):
                continue
            if "reports" in section:
                report = section["reports"]["all problems"]
                if "num_beams" in section:
                    name = "answer_accuracy"
                    how = "greedy" if section["num_beams"] == 1 else f"{section['num_beams']} beams"
                else:
                    # The first figure of other tasks is what counts most.
                    name = how = next(iter(report))
                shown.append(f"{part} {percent(report.get(name))} % ({how})")
            else:
                figures = {name.removeprefix("eval_"): value for name, value in section.items()}
                if "pos_f1" in figures:
                    shown.append(f"POS F1 {percent(figures['pos_f1'])} %")
                if "mlm_loss" in figures:
                    shown.append(f"MLM loss {figures['mlm_loss']:.2f}")
        return ", ".join(shown)


@dataclass(frozen=True)
class Stage:
    """A command of `hf-mwp`, its options, and a [`FinishedFolder`] named after both."""

    name: str  # within the recipe
    command: str
    options: Mapping[str, Any]  # as its YAML file has them; other stages stand in them as their folders
    inputs: tuple[Stage, ...] = ()  # the stages whose folders are among the options
    fingerprint: str = ""  # changes with everything that the result depends on; see [`fingerprint`]
    folder: Path = field(default_factory=Path)  # that the command fills

    @property
    def finished(self) -> FinishedFolder:
        """What is known of the folder: whether it is done, its record, its checkpoint."""
        return FinishedFolder(self.folder, self.fingerprint)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the stages it builds on."""
        return tuple(stage.name for stage in self.inputs)

    def check(self) -> None:
        """Check options and inputs before any stage runs; `UsageError` names the stage and the option."""
        options = {**self.options, "output_dir": str(self.folder)}
        check_stage(self.name, self.command, options, [str(stage.folder) for stage in self.inputs])

    @property
    def is_done(self) -> bool:
        """Whether the folder holds the finished stage."""
        return self.finished.is_done

    @property
    def metrics(self) -> dict[str, Any]:
        """What `metrics.json` in the folder holds; empty without one."""
        return self.finished.metrics

    def run(self, commands: Mapping[str, Callable[[list[str]], int]]) -> StageResult:
        """
        Runs the command unless the folder holds its result already; goes on from the last checkpoint if there is one.
        If another run is busy with this stage, waits for it and takes its result. Commands are functions that take
        arguments as the command line gives them.
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
                # Finished work is not replaced otherwise, and the folder is the stage's alone.
                arguments.append("--overwrite")
            commands[self.command](arguments)

        told = {"stage": self.name, "command": f"hf-mwp {self.command}", "needs": list(self.needs)}
        skipped = not folder.fill(work, told)
        return StageResult(self, folder.record["seconds"], skipped, folder.metrics)
