"""Errors of data files."""

from pathlib import Path


class DataError(ValueError):
    """A data file that is missing or damaged.

    Args:
        message (`str`): What is wrong and what to do.
        file (`Path` or `str`, *optional*): The file.
        line (`int`, *optional*): Its line, counted from 1.
        field (`str`, *optional*): The record's field.
    """

    def __init__(
        self, message: str, file: str | Path | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.message, self.file, self.line, self.field = message, file, line, field
        place = [str(file)] if file is not None else []
        place += [f"line {line}"] if line is not None else []
        place += [f"field {field!r}"] if field is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)

    def __reduce__(self):
        return type(self), (self.message, self.file, self.line, self.field)
