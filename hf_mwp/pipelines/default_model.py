"""The solver of a pipeline for which none is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models.mwp_solver import SolverFolderError


FOLDER = "hf_mwp_quickstart/student"


class DefaultModel(dict):
    """
    What `pipeline("math-word-problem")` finds where other tasks name a model of the Hub: the student that
    `hf-mwp quickstart` leaves in the current folder, as the command line has it, or an error that says so.
    """

    def __init__(self) -> None:
        super().__init__(model=(FOLDER, None))

    def __getitem__(self, key: str) -> Any:
        if key == "model" and not Path(FOLDER).is_dir():
            raise SolverFolderError(
                f"No model was named, and there is no folder {FOLDER}: run `hf-mwp quickstart`, which makes it, or "
                "give model=FOLDER_OR_HUB_ID."
            )
        return super().__getitem__(key)
