"""Error for missing or damaged data files and for files that cannot be written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(ValueError):
    """
    Error for a data file that is missing or cannot be written, or for a damaged record.

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
        told = ", ".join(form.format(part) for form, part in place.items() if part is not None)
        super().__init__(f"{told}: {message}" if told else message)

    def __reduce__(self):
        return type(self), (self.reason, self.file, self.line, self.field)


@contextmanager
def storing(what: str, kept: str, place: str | Path) -> Iterator[None]:
    """Convert errors while `what` is written (damaged store, full disk) to [`DataError`]. The sentence `kept` says
    which data is stored."""
    from ..store.row_store import StoreError

    try:
        yield
    except StoreError as error:
        raise DataError(error.fault, error.path) from error
    except OSError as error:
        raise DataError(
            f"{what} cannot be written: {error.strerror or error}. {kept}. Make room or use a different folder, and "
            "try again",
            error.filename or place,
        ) from error
