"""Runs what the guides show: each Python snippet, and each command on tiny models. Text blocks are their output."""

import json
import re
import shutil
from pathlib import Path

import pytest

from hf_mwp.commands.main import COMMANDS, command_module, main
from hf_mwp.commands.tasks.loaded_data import keep_loaded
from tests.slow_parameters import slow_except
from tests.test_readme import COMMANDS as README_COMMANDS
from tests.test_readme import SMALLER, execute, pipes, workspace  # noqa: F401 (a fixture)
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_causal import tiny_causal
from tests.tiny_seq2seq import tiny_seq2seq


PAGES = Path(__file__).parents[2] / "docs" / "pages"
FILES = [*sorted((PAGES / "guides").glob("*.md")), PAGES / "stability.md"]
GUIDES = {page.stem: page.read_text("utf-8") for page in FILES}
QUICK_GUIDES = GUIDES.keys() - {"classifiers", "distil", "prune", "sparse_teachers", "scale_out", "train"}
QUICKER = {
    r"num_train_epochs=\d+": "max_steps=2",
    "sentence-transformers/all-MiniLM-L6-v2": "tiny_encoder",
    "examples/data/math23k/test.jsonl.gz": "few.jsonl",
}


def blocks(name: str) -> list[tuple[str, str]]:
    """Languages and texts of the fenced blocks of a guide."""
    return re.findall(r"^```(\w+)\n(.*?)^```", GUIDES[name], re.DOTALL | re.MULTILINE)


def commands_of(name: str) -> list[str]:
    commands = []
    for language, text in blocks(name):
        if language == "bash":
            commands += text.splitlines()
    return commands


def quicker(text: str) -> str:
    for slow, quick in QUICKER.items():
        text = re.sub(slow, quick, text)
    return text


@pytest.fixture(scope="module")
def models(workspace):  # noqa: F811
    """The folder of the user, with the models and problems that guides name."""
    folder = workspace / "facebook" / "bart-base"
    tiny_seq2seq().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    folder = workspace / "Qwen" / "Qwen3-1.7B"
    tiny_causal("qwen3").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    tiny_causal("qwen3").save_pretrained(workspace / "Qwen" / "Qwen3-0.6B")
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in tiny_rows(6))
    (workspace / "few.jsonl").write_text(rows, encoding="utf-8")
    return workspace


@pytest.fixture
def inside(models, monkeypatch):
    monkeypatch.chdir(models)


def test_every_guide_shows_something():
    assert len(GUIDES) == 20
    num_outputs = 0
    for name in GUIDES:
        languages = [language for language, _ in blocks(name)]
        assert name == "choose" or "python" in languages or "bash" in languages
        num_outputs += languages.count("text")
    assert num_outputs >= 10


@pytest.mark.parametrize("name", slow_except(GUIDES, *QUICK_GUIDES))
def test_snippets_run_and_print_what_the_page_says(name, inside, request, capsys):
    if "model_cards/" in GUIDES[name]:
        request.getfixturevalue("published_weights")
    names: dict = {"__name__": "__main__"}
    printed = ""
    for number, (language, text) in enumerate(blocks(name), 1):
        if language == "python":
            capsys.readouterr()
            exec(compile(quicker(text), f"{name}, block {number}", "exec"), names)
            printed = capsys.readouterr().out
        elif language == "text":
            # A trainer's log stands before it.
            assert printed.splitlines()[-len(text.splitlines()) :] == text.splitlines()


def all_commands() -> list[list[str]]:
    """The words of each `hf-mwp` command of the guides and of the README pages."""
    lines = list(README_COMMANDS)
    for name in GUIDES:
        lines += commands_of(name)
    commands = []
    for line in lines:
        commands += [words[1:] for words in pipes(line) if words[0] == "hf-mwp" and words[1] in COMMANDS]
    return commands


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_shown_command_is_parsed(words, inside, demo_package, monkeypatch):
    calls = []
    monkeypatch.setattr(command_module(words[0]), "run", lambda *args: calls.append(args) or 0)
    assert main(words) == 0
    assert len(calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", GUIDES)
def test_commands_run(name, inside, monkeypatch, capsys):
    for command in ("card", "publish"):
        monkeypatch.setitem(SMALLER, command, [])
    commands = commands_of(name)
    # Two guides may write into the same folder.
    for folder in re.findall(r"--output_dir (runs/\S+)", "\n".join(commands)):
        shutil.rmtree(folder, ignore_errors=True)
    with keep_loaded():
        for command in commands:
            # The guide on deployment exports graphs, and the page of the one command that does not end.
            if command.startswith(("pip ", "accelerate ", "hf-mwp app ")) or "onnx" in command or not command.strip():
                continue
            printed = ""
            for words in pipes(quicker(re.sub("mawps:all|gsm8k mawps", "mawps.jsonl", command))):
                printed = execute(words, printed, monkeypatch, capsys)
