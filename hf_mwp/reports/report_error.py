"""What can be wrong with a table or its results."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ReportError(ValueError):
    """A table that cannot be run as it is written, or results that are none; the message names file and place."""


def check_name(name: object, known: Iterable[object], kind: str, place: str) -> None:
    """Raises `ReportError` with a close match if `name` is not among the known ones."""
    known = [str(each) for each in known]
    if str(name) not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(known) or 'none'}."
        raise ReportError(f"{place}: unknown {kind} {str(name)!r}.{hint}")
