"""One record of a data file, which knows where it stands."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from ..data_error import DataError


SEPARATOR = " ; "
"""Between the equations of a system and between several answers."""


@dataclass(frozen=True)
class Record:
    """Fields of one record. Every way to read one names file, line and field if it is missing or of a wrong type."""

    fields: dict[str, Any]
    file: str
    line: int  # from 1 on, or record of a JSON array from 1 on

    def fail(self, message: str, field: str | None = None) -> NoReturn:
        """Raises the [`DataError`] of this place."""
        raise DataError(message, self.file, self.line, field)

    def text(self, field: str) -> str:
        """A string."""
        value = self._required(field)
        if not isinstance(value, str):
            self.fail(f"expected a string, not {_describe(value)}", field)
        return self._written(field, value)

    def scalar(self, field: str) -> str:
        """A string or number, as a string."""
        return self._written(field, self._required(field))

    def joined(self, field: str) -> str:
        """A string, a number, or a list of them joined by `SEPARATOR`."""
        value = self._required(field)
        if isinstance(value, list):
            return SEPARATOR.join(self._written(field, item) for item in value)
        return self._written(field, value)

    def index(self, field: str) -> int | None:
        """A whole number that is not negative, or `None` for null."""
        if field not in self.fields:
            self.fail("the field is missing", field)
        value = self.fields[field]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.fail(f"expected a whole number from 0 on, or null, not {_describe(value)}", field)
        return value

    def first_of(self, names: tuple[str, ...]) -> str | None:
        """The first of several names that has a value here."""
        return next((name for name in names if self.fields.get(name) is not None), None)

    def _required(self, field: str) -> Any:
        value = self.fields.get(field)
        if value is None:
            self.fail("the field is null" if field in self.fields else "the field is missing", field)
        return value

    def _written(self, field: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(f"expected a string or number, not {_describe(value)}", field)
        written = as_text(value)
        try:
            written.encode()
        except UnicodeEncodeError:
            self.fail("the text is not UTF-8", field)
        return written


def _describe(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"


def as_text(value: str | float) -> str:
    """A number as answers and equations write one: 0.00001, not 1e-05."""
    plain = isinstance(value, float) and math.isfinite(value)
    return format(Decimal(repr(value)), "f") if plain else str(value)
