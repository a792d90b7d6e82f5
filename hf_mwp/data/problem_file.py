"""Problems in files of the user's own."""

from .errors import DataError
from .source import Record, Row, Source


FILE_ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
_PARTS = {"train": ("train",), "validation": ("validation", "valid", "dev"), "test": ("test",)}


def load_problem_file(source: Source, name: str) -> dict[str, list[Row]]:
    """One file, whose problems become the part its name begins with (`test.jsonl`), else the training part.

    Fields, with the names that are taken for them: `text` (`original_text`, `question`, `problem`), `equation`
    (`formula`), `answer` (`ans`), `id`, `language` (`"zh"` or `"en"`; found from the text if missing), `fold`.
    """
    stem = name.split(".")[0]
    part = next((part for part, names in _PARTS.items() if stem.startswith(names)), "train")
    return {part: source.rows(name, _row)}


def load_problem_folder(source: Source) -> dict[str, list[Row]]:
    """A folder with `train`, `validation` (`valid`, `dev`) and `test` files, at least one of them."""
    splits = {}
    for part, names in _PARTS.items():
        for name in names:
            for ending in (".jsonl", ".csv"):
                if part not in splits and source.has(name + ending):
                    splits[part] = source.rows(name + ending, _row)
    if not splits:
        raise DataError("has no train, validation or test file that ends in .jsonl or .csv", source.folder)
    return splits


def _row(record: Record) -> Row:
    text = record.text("text", "original_text", "question", "problem")
    language = record.text("language", optional=True) or ("zh" if any("一" <= c <= "鿿" for c in text) else "en")
    if language not in ("zh", "en"):
        raise DataError(f"expected 'zh' or 'en', got {language!r}", record.file, record.line, "language")
    fold = record.text("fold", optional=True) or "-1"
    return record.row(
        record.text("id", optional=True) or str(record.line),
        text,
        record.text("equation", "formula", optional=True),
        record.text("answer", "ans", optional=True),
        language,
        int(fold),
    )
