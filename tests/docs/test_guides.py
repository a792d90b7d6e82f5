"""Runs what the guides show: each Python snippet, and each command on tiny models. Text blocks are their output."""

import json
import re
import shutil
from pathlib import Path

import pytest

from hf_mwp.commands.main import COMMANDS, main
from hf_mwp.commands.tasks.math_word_problems import keep_loaded
from tests.test_readme import SMALLER, execute, pipes, workspace  # noqa: F401 (a fixture)
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


PAGES = Path(__file__).parents[2] / "docs" / "pages"
GUIDES = sorted((PAGES / "guides").glob("*.md"))
QUICKER = {
    r"num_train_epochs=\d+": "max_steps=2",
    "sentence-transformers/all-MiniLM-L6-v2": "tiny_encoder",
    "examples/data/math23k/test.jsonl.gz": "few.jsonl",
}


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def quicker(text: str) -> str:
    for slow, quick in QUICKER.items():
        text = re.sub(slow, quick, text)
    return text


@pytest.fixture
def inside(workspace, monkeypatch):  # noqa: F811
    folder = workspace / "facebook" / "bart-base"
    tiny_seq2seq().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in tiny_rows(6))
    (workspace / "few.jsonl").write_text(rows, encoding="utf-8")
    monkeypatch.chdir(workspace)


def test_every_guide_shows_something():
    assert len(GUIDES) == 11
    assert all(
        {"python", "bash"} & {language for language, _ in blocks(page)} for page in GUIDES if page.stem != "choose"
    )
    assert sum(language == "text" for page in GUIDES for language, _ in blocks(page)) >= 10


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_snippets_run_and_print_what_the_page_says(page, inside, capsys):
    names: dict = {"__name__": "__main__"}
    printed = ""
    for number, (language, text) in enumerate(blocks(page), 1):
        if language == "python":
            capsys.readouterr()
            exec(compile(quicker(text), f"{page.name}, block {number}", "exec"), names)
            printed = capsys.readouterr().out
        elif language == "text":
            # A trainer's log stands before it.
            assert printed.splitlines()[-len(text.splitlines()) :] == text.splitlines()


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_commands_run(page, inside, monkeypatch, capsys):
    lines = [line for language, text in blocks(page) if language == "bash" for line in text.splitlines()]
    # The guide on deployment exports graphs, and the page of the one command that does not end.
    skipped = [line for line in lines if line.startswith(("pip ", "accelerate ", "hf-mwp app ")) or "onnx" in line]
    for name in ("card", "publish"):
        monkeypatch.setitem(SMALLER, name, [])
    # Two guides may write into the same folder.
    for folder in re.findall(r"--output_dir (runs/\S+)", "\n".join(lines)):
        shutil.rmtree(folder, ignore_errors=True)
    with keep_loaded():
        for command in lines:
            printed = ""
            for words in pipes(quicker(command)) if command not in skipped else []:
                printed = execute(words, printed, monkeypatch, capsys)


def test_commands_and_options_exist(capsys):
    """Those that are not run, too, and those named in the text."""
    text = "".join(page.read_text("utf-8") for page in GUIDES if page.stem != "choose")
    commands = set(re.findall(r"hf-mwp ([a-z-]+)", text))
    assert commands <= {*COMMANDS}
    known = ""
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help", "all"])
        known += capsys.readouterr().out
    options = set(re.findall(r"(?<![\w-])--([a-z]\w+)", text)) - {
        "deps",
        "config_file",
        "cpu",
    }  # of pip and accelerate
    assert not {option for option in options if f"--{option}" not in known}
