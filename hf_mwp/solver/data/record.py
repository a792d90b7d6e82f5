"""Record of a data file, whose fields are read with errors that name file, line and field."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from .data_error import DataError


SEPARATOR = " ; "  # between several equations or answers
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """Record of a data file. The methods raise [`DataError`] with file, line and field."""

    fields: Mapping[str, Any]
    file: str
    line: int  # 1-based line; in a JSON array the 1-based number of the record.

    def fail(self, message: str, field: str | None = None) -> NoReturn:
        """Raise a [`DataError`] with file and line of the record."""
        raise DataError(message, self.file, self.line, field)

    def text(self, field: str) -> str:
        """Return a string or number as a string."""
        return self._written(field, self._required(field))

    def joined(self, field: str) -> str:
        """Return a string or number as a string, or the elements of a list joined by `SEPARATOR`."""
        value = self._required(field)
        if isinstance(value, list):
            return SEPARATOR.join(self._written(field, item) for item in value)
        return self._written(field, value)

    def index(self, field: str) -> int | None:
        """Return a non-negative integer, or `None` for null."""
        if field not in self.fields:
            self.fail("the field is missing", field)
        value = self.fields[field]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.fail(f"expected a non-negative integer or null, not {_describe(value)}", field)
        return value

    def first_of(self, names: tuple[str, ...]) -> str | None:
        """Return the first field name that has a value in the record, or `None`."""
        for name in names:
            if self.fields.get(name) is not None:
                return name
        return None

    def _required(self, field: str) -> Any:
        if field not in self.fields:
            self.fail(f"the field is missing. The fields are {', '.join(map(str, self.fields))}", field)
        value = self.fields[field]
        if value is None:
            self.fail("the field is null", field)
        return value

    def _written(self, field: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(f"expected a string or number, not {_describe(value)}", field)
        written = as_text(value)
        try:
            written.encode()
        except UnicodeEncodeError:
            self.fail("the text is not UTF-8. If all of the file is in another encoding, pass it as --encoding", field)
        return written


def _describe(value: Any) -> str:
    written = repr(value)
    if len(written) > 40:
        written = written[:37] + "..."
    return f"{type(value).__name__} {written}"


def as_text(value: str | float) -> str:
    """Return a number as written in answers and equations: 0.00001, not 1e-05."""
    if isinstance(value, float) and math.isfinite(value):
        return format(Decimal(str(value)), "f")
    return str(value)
