"""Files of results: JSON, Markdown and a picture."""

from pathlib import Path

from .markdown import to_markdown
from .picture import draw_table
from .table_result import TableResult


def write_report(result: TableResult, folder: Path, name: str | None = None) -> list[str]:
    """
    Write results as JSON, as Markdown and, if there are figures in percent, as a picture, by default under the
    result's own name. Return the names of the files.
    """
    name = name or result.file_name
    files = [f"{name}.json", f"{name}.md"]
    picture = None
    result.save(folder / f"{name}.json")
    if draw_table(result, folder / f"{name}.png"):
        picture = f"{name}.png"
        files.append(picture)
    text = to_markdown(result, picture)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return files
