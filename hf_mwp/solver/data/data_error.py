"""Error for missing or damaged data files."""

from pathlib import Path


class DataError(ValueError):
    """Error for a missing data file or a damaged record.

    Args:
        message (`str`): Message with the fault and what to do.
        file (`str` or `Path`, *optional*): File with the fault.
        line (`int`, *optional*): 1-based line in the file, or 1-based number of the record in a JSON array.
        field (`str`, *optional*): Field of the record.

    The attributes `reason` (`message` alone), `file`, `line` and `field` contain the arguments.
    """

    def __init__(
        self, message: str, file: str | Path | None = None, line: int | None = None, field: str | None = None
    ):
        self.reason = message
        self.file = None
        self.line = line
        self.field = field
        location = []
        if file is not None:
            self.file = str(file)
            location.append(self.file)
        if line is not None:
            location.append(f"line {line}")
        if field is not None:
            location.append(f"field {field!r}")
        prefix = ", ".join(location)
        if prefix:
            message = f"{prefix}: {message}"
        super().__init__(message)
