"""BibTeX entries of the papers of the losses, from `citations.bib`."""

from functools import cache
from pathlib import Path


@cache
def _entries() -> list[str]:
    return Path(__file__).with_name("citations.bib").read_text(encoding="utf-8").strip().split("\n\n")


def citation_of(key: str) -> str:
    """Return the BibTeX entry with a key."""
    return next(entry for entry in _entries() if f"{{{key}," in entry)
