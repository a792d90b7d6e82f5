"""Layout of the help of the commands."""

import argparse
from collections.abc import Sequence


class HelpFormatter(argparse.HelpFormatter):
    """Formatter that wraps paragraphs, and leaves lines as they are that are indented by two spaces."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = []
        for paragraph in text.strip().split("\n\n"):
            if not paragraph.startswith("  "):
                paragraph = super()._fill_text(paragraph, width, indent)
            paragraphs.append(paragraph)
        return "\n\n".join(paragraphs)


def epilog_of(examples: Sequence[str], remark: str = "") -> str:
    """Return the text at the end of the help of a command: a remark, and examples of complete commands."""
    paragraphs = []
    if remark:
        paragraphs.append(remark)
    if examples:
        lines = [f"  {example}" for example in examples]
        paragraphs += ["examples:", "\n".join(lines)]
    return "\n\n".join(paragraphs)
