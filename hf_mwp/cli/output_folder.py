"""Looking at an output folder before the work that fills it begins."""

from __future__ import annotations

from pathlib import Path

from .errors import CommandError


RECORDS = ("run_config.yaml", "run.json", "data.json", "metrics.json", "run.log", "learning_curve.png")


def check_output_folder(path: str | Path) -> None:
    """Raises `CommandError` if a file has the name of the folder, or of one above it."""
    there = next((place for place in (Path(path), *Path(path).parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise CommandError(f"{there} is a file; choose another output folder.")


def describe_contents(path: Path, *made: str) -> str:
    """What a run has left in its folder: what it `made`, and the records that are there."""
    return f"{path} has {', '.join((*made, *(name for name in RECORDS if (path / name).is_file())))}"
