"""Functions that remove or show control characters and terminal escape sequences in texts."""

import re


_CONTROLS = r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
# Terminal escape sequences: with parameters (colours), a string (window titles), for character sets, one character.
_SEQUENCE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\|(?=\n|\Z))|[()*+][0-~]|[78=>@-OQ-WYZ\\a-z{-~])"
)
_UNREAD = re.compile(f"{_SEQUENCE}|{_CONTROLS}")
_SHOWN = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Remove control characters and terminal escape sequences, whose digits must not be mistaken for numbers."""
    return _UNREAD.sub("", text)


def show_controls(text: str, form: str = "\\x{:02x}") -> str:
    """Replace control characters, except line ends and tabs, by visible escapes such as `\\x1b`."""
    return _SHOWN.sub(lambda match: form.format(ord(match.group())), text)
