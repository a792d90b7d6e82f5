"""Code in a solver's folder that tells Transformers without hf_mwp what to install."""

from __future__ import annotations

import shutil
from os import PathLike
from pathlib import Path

from ..mwp_student.remote_code import name_code


FILE = "use_hf_mwp.py"
AUTO_MAP = {"AutoConfig": "use_hf_mwp.MwpSolverConfig", "AutoModel": "use_hf_mwp.MwpSolver"}


def save_solver_code(folder: str | PathLike) -> None:
    """
    Adds a file to a folder written by `save_pretrained`, and to its `config.json` the entries which point to it:
    `AutoModel.from_pretrained(folder, trust_remote_code=True)` and `pipeline("math-word-problem", ...)` then import
    hf_mwp by themselves, or say that it is to be installed. `save_pretrained` of a solver does this; call it for
    folders of earlier versions. The file is a dozen lines and not the code itself: encoder, decoder, search and the
    reading of numbers are most of the package.
    """
    folder = Path(folder)
    shutil.copyfile(Path(__file__).with_name(FILE), folder / FILE)
    name_code(folder / "config.json", AUTO_MAP)
