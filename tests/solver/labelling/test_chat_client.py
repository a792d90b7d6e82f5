"""Requests to servers with OpenAI's chat protocol."""

import time

import pytest
from huggingface_hub import constants

from hf_mwp.solver.labelling import chat_client
from hf_mwp.solver.labelling.chat_client import ChatClient, ReplyError
from hf_mwp.utils.usage_error import UsageError
from tests.slow_parameters import slow_after
from tests.solver.labelling.chat_server import chat_server


MESSAGES = [{"role": "user", "content": "1 and 2?"}]


@pytest.fixture
def server():
    with chat_server(str.upper) as server:
        yield server


def ask(server, **options):
    return ChatClient(server.url, "m", **options).ask(MESSAGES, max_tokens=9)


def test_reply_with_its_tokens(server):
    reply = ask(server)
    assert (reply.text, reply.is_complete) == ("1 AND 2?", True)
    assert (reply.prompt_tokens, reply.completion_tokens) == (100, 7)
    (request,) = server.requests
    assert (request["model"], request["max_tokens"], request["messages"]) == ("m", 9, MESSAGES)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_url_of_the_server_with_and_without_a_path(server, path):
    client = ChatClient(server.url.removesuffix("/v1") + path, "m")
    assert client.ask(MESSAGES).text == "1 AND 2?"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, 3, {"prompt_tokens": "many"}])
def test_usage_may_be_missing(server, usage):
    server.usage = usage
    reply = ask(server)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("1 AND 2?", None, None)


def test_cut_reply_is_marked(server):
    server.finish_reason = "length"
    assert not ask(server).is_complete


@pytest.mark.parametrize("content", [None, ""])
def test_reply_without_a_text_is_empty(server, content):
    server.reply = lambda question: content
    assert ask(server).text == ""


@pytest.mark.parametrize(
    "faults",
    slow_after(
        5,
        [
            [429],
            ["disconnect"],
            ["hang"],
            ["no JSON"],
            ['{"choices": 3}'],
            [(429, {"Retry-After": "0"})],
            [500, 503, 502],
            [(408, {})],
            ["[]"],
            ["{}"],
            ['{"choices": []}'],
            ['{"choices": [{"message": {"content": 3}}]}'],
        ],
    ),
)
def test_request_is_repeated_after_a_transient_fault(server, faults):
    server.faults += faults
    assert ask(server, timeout=0.3).text == "1 AND 2?"
    assert len(server.requests) == len(faults) + 1


def test_delays_are_doubled_unless_the_server_states_one(server, monkeypatch):
    stated = [(429, {"Retry-After": "7"}), (503, {"Retry-After": "9999"}), (503, {"Retry-After": "x"})]
    server.faults += [500, 500, *stated]
    delays = []
    client = ChatClient(server.url, "m")
    monkeypatch.setattr(chat_client, "FIRST_DELAY", 0.5)
    monkeypatch.setattr(client._stopped, "wait", delays.append)
    client.ask(MESSAGES)
    assert delays == [0.5, 1.0, 7.0, 60.0, 8.0]


@pytest.mark.parametrize(
    ("fault", "message"), slow_after(1, [(500, "status 500 .fault 500."), ("hang", "within 0.2 seconds.*llm_timeout")])
)
def test_repetitions_end(server, fault, message):
    client = ChatClient(server.url, "m", retries=2, timeout=0.2)
    client.ask(MESSAGES)
    server.faults += [fault] * 3
    with pytest.raises(ReplyError, match=message):
        client.ask(MESSAGES)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("fault", "num_requests", "message"),
    [
        pytest.param("hang", 2, "no reply within 0.2 seconds.*llm_timeout", marks=pytest.mark.slow),
        ("<html>Welcome</html>", 2, "the reply does not have the form of OpenAI's chat"),
        (401, 1, "status 401, access denied .fault 401.*--llm_api_key.*LLM_API_KEY.*HF_TOKEN"),
        (403, 1, "status 403, access denied"),
        (404, 1, "status 404 for model 'm' .fault 404.*/v1.*--llm"),
    ],
)
def test_unusable_server_is_named_soon(server, fault, num_requests, message):
    server.faults += [fault] * 9
    with pytest.raises(UsageError, match=f"{server.url}: {message}"):
        ask(server, timeout=0.2)
    assert len(server.requests) == num_requests


def test_missing_server_is_named_soon(monkeypatch):
    with chat_server(str.upper) as server:
        pass
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    started = time.monotonic()
    with pytest.raises(UsageError, match=f"{server.url}: the server cannot be reached.*Start it"):
        ask(server)
    assert time.monotonic() - started < 5
    monkeypatch.undo()


def test_refused_request_is_not_repeated(server):
    server.faults += [(400, {}), 422]
    client = ChatClient(server.url, "m")
    with pytest.raises(ReplyError, match="status 400 .try again."):
        client.ask(MESSAGES)
    with pytest.raises(ReplyError, match="status 422 .fault 422."):
        client.ask(MESSAGES)
    assert client.ask(MESSAGES).text == "1 AND 2?"
    assert len(server.requests) == 3


def test_many_failures_in_succession_end_the_run(server):
    client = ChatClient(server.url, "m", retries=0)
    client.ask(MESSAGES)
    server.faults += [500] * 20
    for _ in range(chat_client.MAX_FAILURES - 1):
        with pytest.raises(ReplyError):
            client.ask(MESSAGES)
    with pytest.raises(UsageError, match="8 requests in succession failed.*status 500"):
        client.ask(MESSAGES)


def test_stopped_client_repeats_nothing(server):
    server.faults += [500]
    client = ChatClient(server.url, "m")
    client.stop()
    with pytest.raises(ReplyError, match="stopped"):
        client.ask(MESSAGES)
    client.start()
    assert client.ask(MESSAGES).text == "1 AND 2?"


def test_offline_mode_is_named(server):
    # Undone before the server's own change of this value is.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(UsageError, match="HF_HUB_OFFLINE=0"):
            ask(server)
    assert server.requests == []


@pytest.mark.parametrize(("key", "sent"), [(None, "Bearer none"), ("", "Bearer none"), ("secret", "Bearer secret")])
def test_hub_token_is_not_sent_to_other_servers(server, monkeypatch, key, sent):
    monkeypatch.setenv("HF_TOKEN", "hf_user")
    ask(server, api_key=key)
    headers = {name.lower(): value for name, value in server.headers[0].items()}
    assert headers["authorization"] == sent


@pytest.mark.parametrize(
    ("endpoint", "is_hub"),
    [
        ("https://router.huggingface.co/v1", True),
        ("https://abc.eu-west-1.aws.endpoints.huggingface.cloud", True),
        ("https://huggingface.co/x", True),
        ("http://router.huggingface.co/v1", False),
        ("https://huggingface.co.example.com/v1", False),
        ("https://nothuggingface.co/v1", False),
        ("http://127.0.0.1:8080/v1", False),
    ],
)
def test_servers_of_hugging_face_get_the_hub_token(endpoint, is_hub):
    # Without a token of its own, the client uses the one of the environment.
    assert ChatClient(endpoint, "m")._client.token == (None if is_hub else "none")


@pytest.mark.parametrize(
    "endpoint",
    ["", "localhost:8080", "127.0.0.1", "ftp://a/v1", "http://", "http://a:x/v1", "http://a:99999", "http://[a"],
)
def test_text_that_is_not_a_url_is_named(endpoint):
    with pytest.raises(UsageError, match="--endpoint: expected a URL such as http://"):
        ChatClient(endpoint, "m")


@pytest.mark.parametrize(
    ("endpoint", "key", "option"),
    [("http://me:secret@127.0.0.1/v1", None, "--endpoint.*password"), ("http://a/v1", "клю́ч", "--llm_api_key")],
)
def test_password_in_the_url_and_wrong_keys_are_refused(endpoint, key, option):
    with pytest.raises(UsageError, match=option):
        ChatClient(endpoint, "m", key)
