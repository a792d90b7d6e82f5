import json
import re
import shutil
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from hf_mwp.commands.web_app import server
from hf_mwp.commands.web_app.local_server import MAX_BODY
from hf_mwp.commands.web_app.server import FILES, MAX_PROBLEMS, Page, decimal_form, make_server, written_equation
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.utils.usage_error import UsageError


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


def solve(address, text):
    request = urllib.request.Request(f"{address}/solve", json.dumps({"text": text}).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def text_of(problem):
    return "".join(piece for piece, _ in problem["parts"])


def fetch(address, path):
    with urllib.request.urlopen(address + path) as answer:
        return answer.read().decode(), answer.headers


@pytest.mark.parametrize("path", FILES)
def test_page_loads_nothing_from_other_hosts_and_shows_problems_as_text(address, path):
    content, headers = fetch(address, path)
    assert headers["Content-Security-Policy"] == "default-src 'self'"
    for method in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert method not in content
    # The name of the SVG language is never requested.
    assert "http" not in content.replace("http://www.w3.org/2000/svg", "")


def test_page_follows_its_own_security_policy(address):
    page, _ = fetch(address, "/")
    assert "<textarea" in page
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|data:", page)
    loaded = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert {*loaded} == {*FILES} - {"/"}


def test_query_of_the_page_is_left_to_the_page(address):
    assert fetch(address, "/?text=1%2B2&language=zh")[0] == fetch(address, "/")[0]


def test_requests_of_the_page_are_within_the_limit_of_the_server(address):
    script, _ = fetch(address, "/page.js")
    assert 1 <= int(re.search(r"LINES_PER_REQUEST = (\d+)", script)[1]) <= MAX_PROBLEMS
    assert 6 * int(re.search(r"CHARACTERS_PER_REQUEST = (\d+)", script)[1]) < MAX_BODY  # a character as \ud800


def test_all_words_of_the_page_are_served_in_both_languages(address):
    description = json.loads(fetch(address, "/models")[0])
    english = description["words"]["en"]
    chinese = description["words"]["zh"]
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", chinese[name]))
    used = re.findall(r'data-word="(\w+)"', fetch(address, "/")[0])
    used += re.findall(r'\bword\("(\w+)"', fetch(address, "/page.js")[0])
    assert len(used) > 10
    assert {*used} <= {*english}


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
        assert answer["equation"].count("*") == answer["written"].count("×")


@pytest.mark.parametrize("text", ["", "苹果", "1/0 <b>*</b>", "<script>alert(3)</script>", "9" * 5000])
def test_problem_without_an_answer_has_an_error(address, text):
    (problem,) = solve(address, text)["problems"]
    (result,) = problem["results"]
    assert result["answers"] or result["error"]
    assert text_of(problem) == text


def test_number_that_was_not_read_is_named_in_both_languages(address):
    (problem,) = solve(address, "小明有4个苹果，又买了2个，走了两刻，一共有几个？")["problems"]
    (warning,) = [warning for warning in problem["results"][0]["warnings"] if "Check" in warning["en"]]
    assert warning == {
        "en": "Check the numbers: 两刻 was not read as a number.",
        "zh": "请检查题目中的数：“两刻”没有读作数。",
    }


@pytest.mark.parametrize(
    ("value", "decimal"),
    [
        ("12", ""),
        ("2.5", ""),
        ("49/2", "= 24.5"),
        ("1/3", "≈ 0.333333"),
        ("-5/4", "= -1.25"),
        ("1/8000000", "= 1.25e-07"),
    ],
)
def test_fraction_is_also_shown_as_a_decimal(value, decimal):
    assert decimal_form(value) == decimal


@pytest.mark.parametrize(
    ("equation", "written"),
    [
        ("25-3*6", "25 − 3 × 6"),
        ("120*25%-(3/8)/2", "120 × 25% − (3 ÷ 8) ÷ 2"),
        ("-5+(-3)", "-5 + (-3)"),
        ("2^3", "2 ^ 3"),
        ("7", "7"),
    ],
)
def test_equation_is_written_with_the_signs_of_schoolbooks(equation, written):
    assert written_equation(equation) == written


def test_half_a_surrogate_pair_is_named(address):
    (problem,) = solve(address, "4个\ud800和2个")["problems"]
    error = problem["results"][0]["error"]
    assert "U+D800" in error["en"]
    assert "U+D800" in error["zh"]


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
