import json
import shutil
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from hf_mwp.commands.web_app import server
from hf_mwp.commands.web_app.server import MAX_PROBLEMS, Page, make_server
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.utils.usage_error import UsageError


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


def solve(address, text):
    request = urllib.request.Request(f"{address}/solve", json.dumps({"text": text}).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def text_of(problem):
    return "".join(piece for piece, _ in problem["parts"])


def test_page_loads_nothing_from_other_hosts_and_shows_problems_as_text(address):
    with urllib.request.urlopen(address + "/") as answer:
        page = answer.read().decode()
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "<textarea" in page
    for method in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
        assert method not in page
    # The name of the SVG language is never requested.
    assert page.replace("http://www.w3.org/2000/svg", "").count("http") == 0


def test_models_and_examples_are_listed(address, solver_folder):
    with urllib.request.urlopen(address + "/models") as answer:
        description = json.loads(answer.read())
    assert description["models"] == [solver_folder.name]
    assert description["language"] == "zh"
    assert len(description["examples"]) > 2


def test_folders_with_the_same_name_are_two_models(solver_folder, tmp_path):
    folders = [tmp_path / parent / "student" for parent in "ab"]
    for folder in folders:
        shutil.copytree(solver_folder, folder)
    assert [*Page(folders).solvers] == [str(folder) for folder in folders]


def test_missing_reranker_is_named_at_the_start(solver_folder, tmp_path):
    folder = shutil.copytree(solver_folder, tmp_path / "student")
    DefaultSearch(num_beams=8, rerank=True).save_pretrained(folder)
    with pytest.raises(UsageError, match=r"plausibility\.json"):
        make_server([folder])


def test_problem_is_solved(address):
    (problem,) = solve(address, TEXT)["problems"]
    assert [piece for piece, is_number in problem["parts"] if is_number] == ["4", "2"]
    assert text_of(problem) == TEXT
    (result,) = problem["results"]
    values = [answer["value"] for answer in result["answers"]]
    assert values
    assert len(set(values)) == len(values)
    assert result["milliseconds"] > 0
    for answer in result["answers"]:
        assert 0 < answer["probability"] <= 1
        assert answer["equation"]
        assert answer["prefix"]


@pytest.mark.parametrize("text", ["", "苹果", "1/0 <b>*</b>", "<script>alert(3)</script>", "9" * 5000])
def test_problem_without_an_answer_has_an_error(address, text):
    (problem,) = solve(address, text)["problems"]
    (result,) = problem["results"]
    assert result["answers"] or result["error"]
    assert text_of(problem) == text


def test_half_a_surrogate_pair_is_named(address):
    (problem,) = solve(address, "4个\ud800和2个")["problems"]
    assert "U+D800" in problem["results"][0]["error"]


def test_only_the_first_of_many_lines_are_solved(address):
    result = solve(address, "\n".join([TEXT] * 1000))
    assert len(result["problems"]) == MAX_PROBLEMS
    assert result["left_out"] == 1000 - MAX_PROBLEMS


def test_simultaneous_users_get_their_own_answers(address):
    texts = [f"小明有{number}个苹果，又买了2个，一共有几个？" for number in range(3, 15)]

    def answers_of(text):
        return solve(address, text)["problems"][0]["results"][0]["answers"]

    expected = [answers_of(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(answers_of, texts)) == expected


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/solve", b"no JSON", 400),
        ("/solve", b"{}", 400),
        ("/solve", b"[" * 100_000, 400),
        ("/solve", b'{"text": ' * 100_000, 400),
        ("/solve", b'{"text": "\xff\xfe"}', 400),
        ("/solve", b'{"text": 5}', 400),
        ("/solve", b'{"text": ["a"]}', 400),
        ("/solve", b'"text"', 400),
        ("/solve", b'{"text": ' + b"9" * 9000 + b"}", 400),
        ("/other", b"{}", 404),
    ],
)
def test_wrong_requests_are_refused(address, path, body, status):
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(address + path, body), timeout=9)
    assert raised.value.code == status


def test_unexpected_error_is_named_without_the_text(address, monkeypatch, capfd):
    def fail(solver, text):
        raise RuntimeError(text)

    monkeypatch.setattr(server, "solve", fail)
    with pytest.raises(urllib.error.HTTPError) as raised:
        solve(address, TEXT)
    assert raised.value.code == 500
    assert capfd.readouterr().err == "hf-mwp app: a request failed (RuntimeError).\n"


def test_too_much_text_is_refused(address):
    with pytest.raises(urllib.error.HTTPError) as raised:
        solve(address, "9" * 1_100_000)
    assert raised.value.code == 413


def test_port_in_use_is_named(solver_folder):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)):
            make_server([solver_folder], port)
    with pytest.raises(UsageError, match="99999.*0-65535"):
        make_server([solver_folder], 99999)


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "192.0.2.1"])
def test_host_of_another_machine_is_named(solver_folder, host):
    with pytest.raises(UsageError, match=f"{host}.*--host|--host is empty"):
        make_server([solver_folder], 0, host)
