"""The error of everything that reads data files, or writes what it makes of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(ValueError):
    """
    A missing or unwritable data file, or a damaged record.

    Args:
        message (`str`): The fault and its remedy.
        file (`str` or `Path`, *optional*): The file.
        line (`int`, *optional*): 1-based line in the file, or 1-based record in a JSON array.
        field (`str`, *optional*): The field of the record.

    Attributes `reason` (the message without place), `file`, `line` and `field` hold the parts.
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
    """Raise [`DataError`] for a damaged store or a full disk while `what` is written, naming what is `kept`."""
    from ..store.row_store import StoreError

    try:
        yield
    except StoreError as error:
        raise DataError(error.fault, error.path) from error
    except OSError as error:
        raise DataError(
            f"{what} cannot be written: {error.strerror or error}. {kept}: make room, or name another folder, and run "
            "the same again",
            error.filename or place,
        ) from error
