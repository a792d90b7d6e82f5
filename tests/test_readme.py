"""Runs what README.md shows: every Python snippet as it stands, every command on tiny models; recipes and tables are
only planned. `tests/docs` runs the guides in the same way.

Snippets and commands run in a folder that looks like the repository after `make demo`, except that teacher, student,
and the classifier of the Hub are tiny models with random weights. Commands that train get a few flags more, so that
they train two steps.
"""

import configparser
import gzip
import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification

from hf_mwp.commands.main import main
from hf_mwp.commands.tasks.loaded_data import keep_loaded
from tests.examples.scripts import load_script
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver


ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md"]
LINKED = [*PAGES, ROOT / "examples" / "README.md", ROOT / "CONTRIBUTING.md"]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Languages and texts of the fenced blocks of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)


BLOCKS = blocks(PAGES[0])
CLASSIFIER = "textattack/bert-base-uncased-SST-2"
PYTHON = [code for language, code in BLOCKS if language == "python"]
COMMANDS = "\n".join(code for language, code in BLOCKS if language == "bash").split("\n")
COMMANDS = [line for line in COMMANDS if line.strip()]

# Commands of both pages, and what they print.
SHOWN_COMMAND = re.compile(r"^(hf-mwp solve [^\n]*)\n```\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHOWN = dict(SHOWN_COMMAND.findall("\n".join(TEXTS.values())))

FEW_STEPS = ["--max_steps", "2", "--max_train_samples", "60", "--max_eval_samples", "20", "--use_cpu"]
SMALLER = {
    "--help": [],
    "train": ["--encoder", "tiny_encoder", "--max_length", "64", *FEW_STEPS],
    "distill": FEW_STEPS,
    "evaluate": ["--max_eval_samples", "20"],
    "solve": [],
    "publish": [],
    "export": [],
    "rerank": ["--max_train_samples", "8", "--max_eval_samples", "8"],
    "pseudo-label": ["--num_beams", "2"],
    "examples/results/family.py": ["--problems", "4"],
    "heads": ["--num_batches", "1", "--batch_size", "4"],
    "examples/distill_encoder.py": [
        *("--teacher", "tiny_encoder", "--max_texts", "60", "--max_steps", "2", "--use_cpu", "true"),
        *("--layers", "2", "--hidden_size", "8", "--heads", "2"),
    ],
    "examples/out_of_fold.py": [
        *("--encoder", "tiny_encoder", "--max_steps", "2", "--max_eval_samples", "4", "--num_beams", "1"),
        *("--use_cpu", "true"),
    ],
    "prune": ["--num_pruning_steps", "1", "--calibration_examples", "8", *FEW_STEPS],
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """A folder with `examples`, `model_cards` and the models that the demo leaves."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("examples", "model_cards"):
        (folder / name).symlink_to(ROOT / name)
    processor = tiny_processor(max_length=64, language="en")
    for name, layers in [("teacher", 6), ("student", 3)]:
        target = folder / "hf_mwp_quickstart" / name
        tiny_solver(processor, layers=layers).save_pretrained(target)
        processor.save_pretrained(target)
    tiny_solver(processor, layers=6).encoder.save_pretrained(folder / "tiny_encoder")
    processor.tokenizer.save_pretrained(folder / "tiny_encoder")
    classifier = tiny_classifier(vocab_size=len(processor.tokenizer), num_hidden_layers=6)
    classifier.save_pretrained(folder / CLASSIFIER)
    processor.tokenizer.save_pretrained(folder / CLASSIFIER)
    with gzip.open(ROOT / "examples" / "data" / "mawps" / "mawps.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(next(file)) for _ in range(60)]
    lines = []
    for row in rows:
        problem = {"id": row["iIndex"], "text": row["sQuestion"], "answer": row["lSolutions"][0]}
        lines.append(json.dumps(problem) + "\n")
    (folder / "mawps.jsonl").write_text("".join(lines), encoding="utf-8")
    for task, column, label in (("RTE", "label", "entailment"), ("STS-B", "score", "3.5")):
        (folder / "GLUE" / task).mkdir(parents=True)
        lines = [f"index\tsentence1\tsentence2\t{column}"]
        lines += [f"{index}\tTom has {index} apples.\tTom has fruit.\t{label}" for index in range(10)]
        for split in ("train", "dev"):
            (folder / "GLUE" / task / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def inside(workspace, monkeypatch):
    monkeypatch.chdir(workspace)


def pipes(command: str) -> list[list[str]]:
    """Words of the commands of a line, comments left out."""
    commands: list[list[str]] = [[]]
    for word in shlex.split(command, comments=True):
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def smaller(arguments: list[str]) -> list[str]:
    """The flags that make a command of the README quick; recipes and tables are only planned here."""
    recipes = re.compile("reproduce|comp(act|ress)_|pruning_|stark_|distill_(translation|math)")
    if any(recipes.search(argument) for argument in arguments):
        flags = [] if {"--dry_run", "--list"} & set(arguments) else ["--dry_run"]
        # Its own encoder comes with the demo's packages, which the tests do without.
        return [*flags, "--encoder", "tiny_encoder"] if "examples/compress_asdiv.yaml" in arguments else flags
    return SMALLER[arguments[0]]


def execute(words: list[str], given: str, monkeypatch, capsys) -> str:
    """Runs one command, with text on its standard input, and returns what it prints."""
    program = words[0]
    arguments = words[1:]
    if program in ("hf-mwp", "python"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        quick = [*arguments, *smaller(arguments)]
        if program == "python":
            status = load_script(Path(quick[0]).relative_to("examples")).main(quick[1:])
        else:
            status = main(quick)
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return printed.out
    if program == "echo":
        return " ".join(arguments) + "\n"
    if program == "make":
        result = subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout
    if words[:3] == ["pip", "install", "-e"]:
        extra = re.fullmatch(r"\.(?:\[(\w+)])?", words[3])
        assert extra, words[3]
        setup = configparser.ConfigParser()
        setup.read(ROOT / "setup.cfg", encoding="utf-8")
        assert extra[1] is None or extra[1] in setup["options.extras_require"]
        return ""
    raise AssertionError(f"README shows {program!r}, which this test does not know how to check")


def code_lines(code: str) -> set[str]:
    """The lines of a block without their comments."""
    lines = set()
    for line in code.splitlines():
        if not line.startswith("#"):
            lines.add(re.split("  +#", line)[0].rstrip())
    return lines


def test_the_chinese_page_shows_what_the_english_one_does():
    english = [(language, code_lines(code)) for language, code in blocks(PAGES[0])]
    for language, code in blocks(PAGES[1]):
        if language == "text":
            continue
        # It solves a problem of its own.
        lines = code_lines(code) - SHOWN.keys()
        assert any(language == name and lines <= shown for name, shown in english), lines


@pytest.mark.usefixtures("published_weights")
@pytest.mark.parametrize("command", SHOWN)
def test_commands_print_what_the_page_says(command, inside, monkeypatch, capsys):
    [words] = pipes(command)
    assert execute(words, "", monkeypatch, capsys).strip() == SHOWN[command].strip()


# One test for the commands: a later one needs what an earlier one wrote.
@pytest.mark.slow
@pytest.mark.usefixtures("published_weights")
def test_commands(inside, monkeypatch, capsys):
    with keep_loaded():
        for command in COMMANDS:
            printed = ""
            for words in pipes(re.sub("mawps:all|gsm8k mawps", "mawps.jsonl", command)):
                printed = execute(words, printed, monkeypatch, capsys)
            if "hf-mwp solve" in command:
                assert printed.strip(), command


# As for the commands, later snippets may use names of earlier ones.
def test_python(inside, published_weights):
    assert len(PYTHON) >= 2 and len(COMMANDS) >= 5 and len(SHOWN) == 2
    names: dict = {"__name__": "__main__"}
    for number, code in enumerate(PYTHON, start=1):
        exec(compile(code, f"README.md, Python snippet {number}", "exec"), names)
    assert AutoModelForSequenceClassification.from_pretrained("runs/classifier").config.num_hidden_layers == 3


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_links_are_there(page):
    text = page.read_text("utf-8")
    for target in re.findall(r"]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for folder in re.findall(r"`((?:hf_mwp|examples)/[\w/.]+)`", text):
        assert (ROOT / folder).exists(), folder


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_of_links_are_headings(page):
    for target, anchor in re.findall(r"]\((?!https?:)([^)#]*\.md)#([^)]*)\)", page.read_text("utf-8")):
        headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text("utf-8"), re.MULTILINE)
        assert anchor in {slug(heading) for heading in headings}, f"{target}#{anchor}"


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
