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
        self.reason, self.line, self.field = message, line, field
        self.file = None if file is None else str(file)
        place = {"{}": self.file, "line {}": line, "field {!r}": field}
        where = ", ".join(form.format(part) for form, part in place.items() if part is not None)
        super().__init__(f"{where}: {message}" if where else message)
