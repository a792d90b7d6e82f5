"""Reads the files of one data set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..data_error import DataError
from .file_contents import read_entries, read_lines
from .record import Record


class RecordReader:
    """
    The files of a folder, each plain or, with `.gz` added to its name, gzipped. Where `on_error` is `"skip"`, damaged
    records are left out and their errors kept in `damaged`; with `"raise"` the first one raises. Where a file is
    missing, the error says with `origin` where it is to be had.
    """

    def __init__(self, folder: Path, on_error: str = "raise", origin: str = ""):
        self.folder, self.on_error, self.origin = folder, on_error, origin
        self.damaged: list[DataError] = []

    def find(self, *names: str) -> Path | None:
        """The first of several files that is there."""
        for name in names:
            for path in (self.folder / name, self.folder / f"{name}.gz"):
                if path.is_file():
                    return path
        return None

    def rows(self, make: Callable[[Record], dict[str, Any]], *names: str) -> list[dict[str, Any]]:
        """
        Return what `make` builds of each record of a file, which may have any of the names; its [`DataError`] for a
        damaged record is raised unless those are skipped, one for a missing file in any case.
        """
        path = self._path(names)
        rows = []
        for line, entry in read_entries(path):
            try:
                if isinstance(entry, DataError):
                    raise entry
                rows.append(make(Record(entry, str(path), line)))
            except DataError as error:
                if self.on_error == "raise":
                    raise
                self.damaged.append(error)
        return rows

    def lines(self, *names: str) -> list[str]:
        """The lines of a list, blank ones left out. A damaged list raises in any case."""
        return [line.strip() for line in read_lines(self._path(names)) if line.strip()]

    def numbered(self, *names: str) -> list[int]:
        """The whole numbers of a list, one a line. A damaged list raises in any case."""
        path = self._path(names)
        numbers = []
        for line, text in enumerate(read_lines(path), 1):
            if text.strip():
                if not text.strip().isdecimal():
                    raise DataError(f"expected a whole number, not {text.strip()[:40]!r}", path, line)
                numbers.append(int(text))
        return numbers

    def _path(self, names: tuple[str, ...]) -> Path:
        path = self.find(*names)
        if path is None:
            hint = f" {self.origin}" if self.origin else ""
            raise DataError(f"there is no such file, nor {names[0]}.gz.{hint}", self.folder / names[0])
        return path
