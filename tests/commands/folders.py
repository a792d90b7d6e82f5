"""Folders of models and runs: made, read and compared. Not a test."""

import json

from tests.tiny import tiny_processor, tiny_solver


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def read_rows(path):
    """Rows of a JSONL file."""
    lines = path.read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def write_rows(path, rows):
    """Write a JSONL file, and return its path."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), "utf-8")
    return path


def training_log(folder):
    return read_json(folder / "trainer_state.json")["log_history"]


def logged_names(folder):
    """Names of all values that a training logged."""
    names = set()
    for entry in training_log(folder):
        names |= entry.keys()
    return names


def contents(folder):
    """Bytes of the files of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def save_solver(folder, processor=None, **fields):
    """Save an untrained solver and its processor; `fields` are those of `tiny_solver`."""
    processor = processor or tiny_processor(max_length=64)
    tiny_solver(processor, **fields).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def mark_as_killed(folder):
    """Make a finished run look as if it had been killed after its model was saved."""
    (folder / "metrics.json").unlink()
    record = read_json(folder / "run.json")
    del record["wall_seconds"]
    (folder / "run.json").write_text(json.dumps(record))
