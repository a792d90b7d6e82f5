"""`hf-mwp pseudo-label --endpoint`: labels from a language model."""

import re
import sys

import pytest

from hf_mwp import load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.commands.options.label_options import LabelArguments
from hf_mwp.commands.pseudo_label import _make_language_model_labeller
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.labelling import language_model_labeller as labelling
from tests.commands.folders import read_json, read_rows, write_rows
from tests.solver.labelling.chat_server import chat_server


ROWS = [
    {"id": "a", "text": "小明有4个苹果和2个梨，一共有多少个水果？", "answer": "6"},
    {"id": "b", "text": "A book has 30 pages. Ann reads 12. How many pages are left?", "answer": "18"},
    {"id": "c", "text": "一本书有30页，看了12页，还剩几页？"},
]
KEY = "key-that-nobody-may-read"


def reply(question):
    return "4+2" if question.startswith("题目：小明") else "30-12"


@pytest.fixture
def server():
    with chat_server(reply) as server:
        yield server


@pytest.fixture
def argv(server, tmp_path):
    problems = write_rows(tmp_path / "problems.jsonl", ROWS)
    options = ["--endpoint", server.url, "--llm", "m", "--problems", str(problems)]
    return ["pseudo-label", *options, "--output_dir", str(tmp_path / "run")]


def test_labels_and_tokens_are_counted(argv, tmp_path, output_of):
    output = output_of(*argv, "--llm_samples", "3")
    folder = tmp_path / "run"
    rows = read_rows(folder / "labelled.jsonl")
    labels = [(row["id"], row["equation"], row["answer"]) for row in rows]
    assert labels == [("a", "4+2", "6"), ("b", "30-12", "18"), ("c", "30-12", None)]
    for words in ("2 │ labelled", "1 │ surest", "0 │ unreadable", "0 │ failed"):
        assert words in output
    assert "Tokens: 500 of the prompts and 35 of the replies, 5 requests" in output
    metrics = read_json(folder / "metrics.json")
    assert metrics["usage"] == {"requests": 5, "prompt_tokens": 500, "completion_tokens": 35, "not_counted": 0}
    assert metrics["fates"]["labelled"] == 2
    assert TrainingTexts.load(folder).unknown == ("m",)
    assert not (folder / "unfinished").exists()
    # The rows are training data.
    english = write_rows(tmp_path / "english.jsonl", [rows[1]])
    assert len(load_mwp_dataset(english)["train"]) == 1


def keys_sent(server):
    keys = set()
    for headers in server.headers:
        keys |= {value for name, value in dict(headers).items() if name.lower() == "authorization"}
    return keys


def test_key_is_sent_and_written_to_no_file(server, argv, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["hf-mwp", "pseudo-label", "--llm_api_key", KEY, f"--llm-api-key={KEY}"])
    assert main([*argv, "--llm_api_key", KEY]) == 0
    assert keys_sent(server) == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


def test_key_of_the_environment_is_sent(server, argv, monkeypatch):
    monkeypatch.setenv("LLM_API_KEY", KEY)
    assert main([*argv, "--max_train_samples", "1"]) == 0
    assert keys_sent(server) == {f"Bearer {KEY}"}
    assert len(server.requests) == 1


def test_interrupted_run_resumes(server, argv, tmp_path, monkeypatch, error_of):
    monkeypatch.setattr(labelling, "AT_ONCE", 1)
    server.faults += [None, 401]
    assert "status 401" in error_of(*argv)
    assert (tmp_path / "run" / "unfinished").is_dir()
    assert main(argv) == 0
    assert len(server.requests) == 3
    assert read_json(tmp_path / "run" / "metrics.json")["usage"]["requests"] == 2


def test_options_are_passed_to_the_labeller(monkeypatch):
    calls = []
    monkeypatch.setattr(labelling, "LanguageModelLabeller", lambda *args, **options: calls.append((args, options)))
    options = {"samples": 3, "agreement": 0.9, "temperature": 0.1, "max_tokens": 7, "workers": 2, "timeout": 5.0}
    options |= {"retries": 1, "api_key": KEY, "prompt": "prompt.yaml"}
    fields = {f"llm_{name}": value for name, value in options.items()}
    _make_language_model_labeller(LabelArguments(problems=["a"], endpoint="url", llm="m", output_dir="b", **fields))
    assert calls == [(("url", "m"), options)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "x"], "`model` does not apply to a language model"),
        (["--num_beams", "7"], "`num_beams` does not apply"),
        (["--pseudo_label_fraction", "0.5"], "`pseudo_label_fraction` does not apply"),
        (["--task", "math_seq2seq"], "`task` does not apply"),
        (["--keep_fraction", "0.5"], "`keep_fraction` does not apply"),
        (["--llm_samples", "0"], "`samples` must be at least 1"),
        (["--llm_prompt", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_options_are_named(server, argv, error_of, options, message):
    assert re.search(message, error_of(*argv, *options))
    assert server.requests == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "`model` must be given, or `endpoint` and `llm`"),
        ({"endpoint": "http://127.0.0.1/v1"}, "`endpoint` needs `llm`"),
        ({"model": "a", "llm": "m"}, "`llm` needs `endpoint`"),
        ({"model": "a", "llm_samples": 2}, "`llm_samples` needs `endpoint`"),
        ({"model": "a", "llm_api_key": "k"}, "`llm_api_key` needs `endpoint`"),
    ],
)
def test_options_need_a_solver_or_a_language_model(fields, message):
    with pytest.raises(ValueError, match=message):
        LabelArguments(problems=["b"], output_dir="c", **fields)
