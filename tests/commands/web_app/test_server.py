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


def test_the_page_loads_nothing_from_elsewhere(address):
    with urllib.request.urlopen(address + "/") as answer:
        page = answer.read().decode()
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "<textarea" in page
    # The name of the SVG language is no address that is asked for.
    assert page.replace("http://www.w3.org/2000/svg", "").count("http") == 0


def test_models_and_examples(address, solver_folder):
    with urllib.request.urlopen(address + "/models") as answer:
        found = json.loads(answer.read())
    assert found["models"] == [solver_folder.name] and found["language"] == "zh" and len(found["examples"]) > 2


def test_folders_with_the_same_name_are_two_models(solver_folder, tmp_path):
    folders = [tmp_path / parent / "student" for parent in "ab"]
    for folder in folders:
        shutil.copytree(solver_folder, folder)
    assert [*Page(folders).solvers] == [str(folder) for folder in folders]


def test_a_missing_reranker_is_found_at_the_start(solver_folder, tmp_path):
    folder = shutil.copytree(solver_folder, tmp_path / "student")
    (folder / "plausibility.json").unlink(missing_ok=True)
    DefaultSearch(num_beams=8, rerank=True).save_pretrained(folder)
    with pytest.raises(UsageError, match=r"plausibility\.json"):
        make_server([folder])


def test_a_problem_is_solved(address):
    (problem,) = solve(address, TEXT)["problems"]
    assert [part for part, is_number in problem["parts"] if is_number] == ["4", "2"]
    assert "".join(part for part, _ in problem["parts"]) == TEXT
    (result,) = problem["results"]
    values = [answer["value"] for answer in result["answers"]]
    assert values and len(set(values)) == len(values) and result["milliseconds"] > 0
    for answer in result["answers"]:
        assert 0 < answer["probability"] <= 1 and answer["equation"] and answer["prefix"]


@pytest.mark.parametrize("text", ["", "苹果", "1/0 <b>*</b>", "<script>alert(3)</script>", "9" * 5000])
def test_what_has_no_answer_says_why(address, text):
    (problem,) = solve(address, text)["problems"]
    (result,) = problem["results"]
    assert result["answers"] or result["error"]
    assert "".join(part for part, _ in problem["parts"]) == text


def test_half_a_surrogate_pair_is_told(address):
    (problem,) = solve(address, "4个\ud800和2个")["problems"]
    assert "U+D800" in problem["results"][0]["error"]


def test_of_many_lines_the_first_are_solved(address):
    found = solve(address, "\n".join([TEXT] * 1000))
    assert len(found["problems"]) == MAX_PROBLEMS and found["left_out"] == 1000 - MAX_PROBLEMS


def test_two_users_at_once_get_their_own_answers(address):
    texts = [f"小明有{number}个苹果，又买了2个，一共有几个？" for number in range(3, 15)]
    alone = [solve(address, text)["problems"][0]["results"][0]["answers"] for text in texts]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda text: solve(address, text)["problems"][0]["results"][0]["answers"], texts))
    assert together == alone


@pytest.mark.parametrize(
    "path, body, headers, status",
    [
        ("/solve", b"no JSON", {}, 400),
        ("/solve", b"{}", {}, 400),
        ("/solve", b"[" * 100_000, {}, 400),
        ("/solve", b'{"text": ' * 100_000, {}, 400),
        ("/solve", b'{"text": "\xff\xfe"}', {}, 400),
        ("/solve", b'{"text": 5}', {}, 400),
        ("/solve", b'{"text": null}', {}, 400),
        ("/solve", b'{"text": ["a"]}', {}, 400),
        ("/solve", b'"text"', {}, 400),
        ("/solve", b"null", {}, 400),
        ("/solve", b'{"text": ' + b"9" * 9000 + b"}", {}, 400),
        ("/solve", b"{}", {"Content-Length": "two"}, 400),
        ("/solve", b"{}", {"Content-Length": "-1"}, 400),
        ("/other", b"{}", {}, 404),
    ],
)
def test_requests_that_are_wrong(address, path, body, headers, status):
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(address + path, body, headers), timeout=9)
    assert raised.value.code == status


def test_an_unexpected_error_is_named_without_the_text(address, monkeypatch, capfd):
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


def test_a_port_in_use_is_named(solver_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)):
            make_server([solver_folder], port)
    with pytest.raises(UsageError, match="99999.*0-65535"):
        make_server([solver_folder], 99999)


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "192.0.2.1"])
def test_a_host_that_is_not_of_this_machine_is_named(solver_folder, host):
    with pytest.raises(UsageError, match=f"{host}.*--host|--host is empty"):
        make_server([solver_folder], 0, host)
