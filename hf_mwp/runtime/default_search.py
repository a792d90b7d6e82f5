"""Default search settings of a solver, stored in its folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from ..downloads import find_beside
from ..store.files import write_whole
from ..usage_error import UsageError


@dataclass(frozen=True)
class DefaultSearch:
    """
    Default search settings of a solver, stored as `generation_config.json` in its folder.

    `hf-mwp solve`, `hf-mwp evaluate` and the pipeline use them if neither `num_beams` nor `rerank` is set. The search
    is greedy with `num_beams=1` and no re-ranking.

    Args:
        num_beams (`int`, *optional*, defaults to 1): Number of beams.
        rerank (`bool` or `str`, *optional*, defaults to `False`): Whether to re-rank the answers of the beams with the
            `plausibility.json` in the folder, or a re-ranker, such as `"en"` for the one in this package.
    """

    num_beams: int = 1
    rerank: bool | str = False

    file_name = "generation_config.json"

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> DefaultSearch:
        """
        Read the settings of a folder or repository, or return greedy search if there is no file. `kwargs`
        (`revision`, `token`, ...) are passed to the download. Raises `UsageError` if the file is damaged.
        """
        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            return cls()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            num_beams, rerank = content.get("num_beams", 1), content.get("rerank", False)
            if type(num_beams) is not int or num_beams < 1 or not isinstance(rerank, bool | str):
                raise ValueError("`num_beams` must be an integer of at least 1, and `rerank` true, false or a name")
        except (OSError, ValueError, AttributeError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        return cls(num_beams, rerank)

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Write `generation_config.json` to a folder, usually the folder of the model."""
        content = json.dumps(asdict(self), indent=2) + "\n"
        write_whole(Path(save_directory) / self.file_name, content)
