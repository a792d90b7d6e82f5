"""`hf-mwp pseudo-label --endpoint`: labels from a language model."""

import json
import re
import sys

import pytest

from hf_mwp import load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.commands.options.label_options import LabelArguments
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.labelling import language_model_labeller as labelling
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
def problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), encoding="utf-8")
    return path


def run(server, problems, *more):
    argv = ["pseudo-label", "--endpoint", server.url, "--llm", "m", "--problems", str(problems), *more]
    return main([*argv, "--output_dir", str(problems.parent / "run")])


def test_labels_counts_and_tokens(server, problems, capsys):
    assert run(server, problems, "--llm_samples", "3") == 0
    folder = problems.parent / "run"
    rows = [json.loads(line) for line in (folder / "labelled.jsonl").read_text("utf-8").splitlines()]
    assert [(row["id"], row["equation"], row["answer"]) for row in rows] == [
        ("a", "4+2", "6"),
        ("b", "30-12", "18"),
        ("c", "30-12", None),
    ]
    shown = " ".join(capsys.readouterr().out.split())
    for line in ("2 │ labelled", "1 │ surest", "0 │ unreadable", "0 │ failed"):
        assert line in shown
    assert "Tokens: 500 of the prompts and 35 of the replies, 5 requests" in shown
    metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert metrics["usage"] == {"requests": 5, "prompt_tokens": 500, "completion_tokens": 35, "not_counted": 0}
    assert metrics["fates"]["labelled"] == 2
    assert TrainingTexts.load(folder).unknown == ("m",)
    assert not (folder / "unfinished").exists()
    # The rows are training data.
    english = folder / "english.jsonl"
    english.write_text(json.dumps(rows[1]) + "\n", encoding="utf-8")
    assert len(load_mwp_dataset(english)["train"]) == 1


def test_key_is_sent_and_written_to_no_file(server, problems, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["hf-mwp", "pseudo-label", "--llm_api_key", KEY, f"--llm-api-key={KEY}"])
    assert run(server, problems, "--llm_api_key", KEY) == 0
    sent = [dict(headers) for headers in server.headers]
    assert {value for headers in sent for name, value in headers.items() if name.lower() == "authorization"} == {
        f"Bearer {KEY}"
    }
    files = [path for path in problems.parent.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


def test_key_of_the_environment_is_sent(server, problems, monkeypatch):
    monkeypatch.setenv("LLM_API_KEY", KEY)
    assert run(server, problems) == 0
    headers = {name.lower(): value for name, value in server.headers[0].items()}
    assert headers["authorization"] == f"Bearer {KEY}"


def test_interrupted_run_resumes(server, problems, monkeypatch, capsys):
    monkeypatch.setattr(labelling, "AT_ONCE", 1)
    server.faults += [None, 401]
    assert run(server, problems) == 1
    assert "status 401" in capsys.readouterr().err
    assert (problems.parent / "run" / "unfinished").is_dir()
    assert run(server, problems) == 0
    assert len(server.requests) == 3
    metrics = json.loads((problems.parent / "run" / "metrics.json").read_text("utf-8"))
    assert metrics["usage"]["requests"] == 2


def test_first_problems_and_a_prompt_of_ones_own(server, problems):
    prompt = problems.parent / "prompt.yaml"
    prompt.write_text("zh:\n  instruction: 解题。\n  question: '题目：{text}'\n", encoding="utf-8")
    assert run(server, problems, "--llm_prompt", str(prompt), "--max_train_samples", "1") == 0
    (request,) = server.requests
    assert request["messages"] == [{"role": "user", "content": f"解题。\n\n题目：{ROWS[0]['text']}"}]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([401], "status 401, access denied"),
        ([404], "status 404 for model 'm'"),
        (["<html>"] * 9, "OpenAI's chat completions"),
    ],
)
def test_fault_of_the_server_is_named(server, problems, capsys, faults, message):
    server.faults += faults
    assert run(server, problems) == 1
    error = capsys.readouterr().err
    assert message in " ".join(error.split()) and "Traceback" not in error


@pytest.mark.parametrize(
    ("more", "message"),
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
def test_wrong_option_is_named(server, problems, capsys, more, message):
    assert run(server, problems, *more) == 1
    assert re.search(message, capsys.readouterr().err)
    assert server.requests == []


def test_options_of_a_solver_or_of_a_language_model():
    given = {"problems": ["b"], "output_dir": "c"}
    with pytest.raises(ValueError, match="`model` must be given, or `endpoint` and `llm`"):
        LabelArguments(**given)
    with pytest.raises(ValueError, match="`endpoint` needs `llm`"):
        LabelArguments(**given, endpoint="http://127.0.0.1/v1")
    for name, value in (("llm", "m"), ("llm_samples", 2), ("llm_api_key", "k")):
        with pytest.raises(ValueError, match=f"`{name}` needs `endpoint`"):
            LabelArguments(**given, model="a", **{name: value})
