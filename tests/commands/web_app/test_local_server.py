"""Attacks on the server of the page, through raw sockets."""

import contextlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hf_mwp.commands.web_app import local_server
from hf_mwp.commands.web_app.local_server import MAX_BODY, MAX_CONNECTIONS, MAX_HEAD, WORKERS, LocalServer, Response


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /solve HTTP/1.1\r\nHost: localhost\r\n"


def echo(request):
    return Response(request.body or b"page", "text/plain")


@pytest.fixture(scope="module")
def port(serve):
    with serve(LocalServer(echo)) as server:
        yield server.server_port


@pytest.fixture
def hasty(monkeypatch):
    """Shorten the time-outs."""
    monkeypatch.setattr(local_server, "SECONDS", 0.5)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def read(client):
    """Return the status of a response, and the whole response; status 0 if there is none."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while block := client.recv(65536):
            received += block
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", received)
    return int(match[1]) if match else 0, received


def ask(port, *blocks):
    with connect(port) as client:
        for block in blocks:
            client.sendall(block)
        return read(client)


def post(length, body=b"", more=b""):
    return POST + b"Content-Length: " + length + b"\r\n" + more + b"\r\n" + body


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (GET, 200),
        (b"GET /?query HTTP/1.0\r\nHost: localhost:99\r\n\r\n", 200),
        (post(b"4", b"text"), 200),
        (post(b"-1", b"text"), 400),
        (post(b"+4", b"text"), 400),
        (post(b"4.0", b"text"), 400),
        (post("٤".encode(), b"text"), 400),
        (post(b"4", b"text", b"Content-Length: 4\r\n"), 400),
        (POST + b"\r\n", 411),
        (post(b"4", b"4\r\ntext\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"), 411),
        (post(str(MAX_BODY + 1).encode()), 413),
        (post(b"400000000"), 413),
        (b"\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno header\r\nHost: localhost\r\n\r\n", 400),
        (bytes(range(256)) + b"\r\n\r\n", 400),
        (GET[:-2] + b"A: " + b"a" * 2 * MAX_HEAD + b"\r\n\r\n", 431),
        (GET[:-2] + b"A: a\r\n" * 1000 + b"\r\n", 431),
    ],
)
def test_wrong_requests_are_refused(port, request_bytes, status):
    assert ask(port, request_bytes)[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Host: localhost\r\n", 200),
        (b"Host: LOCALHOST:8000\r\n", 200),
        (b"Host: 127.0.0.1\r\n", 200),
        (b"Host: [::1]:8000\r\n", 200),
        (b"", 400),
        (b"Host: \r\n", 400),
        (b"Host: localhost\r\nHost: evil.example\r\n", 400),
        (b"Host: evil.example@localhost\r\n", 400),
        (b"Host: evil.example\r\n", 403),
        (b"Host: localhost.evil.example\r\n", 403),
        (b"Host: 192.168.0.9\r\n", 403),
        (b"Host: localhost\r\nOrigin: http://localhost\r\n", 200),
        (b"Host: 127.0.0.1:8000\r\nOrigin: http://127.0.0.1:8000\r\n", 200),
        (b"Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
        (b"Host: localhost:8000\r\nOrigin: http://localhost:3000\r\n", 403),
        (b"Host: localhost\r\nOrigin: null\r\n", 403),
        (b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n", 403),
    ],
)
def test_other_hosts_and_origins_are_refused(port, headers, status):
    request = b"POST /solve HTTP/1.1\r\n" + headers + b"Content-Length: 1\r\n\r\nx"
    assert ask(port, request)[0] == status


@pytest.mark.parametrize(
    ("host", "allowed", "refused"),
    [
        ("127.0.0.2", [b"127.0.0.2", b"localhost"], [b"192.168.0.9", b"evil.example"]),
        ("0.0.0.0", [b"192.168.0.9", b"[fe80::1]", b"localhost"], [b"evil.example"]),
    ],
)
def test_host_of_the_server_is_allowed(serve, host, allowed, refused):
    with serve(LocalServer(echo, host)) as server:
        for name in allowed + refused:
            with socket.create_connection((host, server.server_port), timeout=20) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
                assert read(client)[0] == (200 if name in allowed else 403)


def test_url_has_the_port():
    with LocalServer(echo) as server:
        assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_body_of_400_mb_is_refused_before_it_is_sent(port):
    status, response = ask(port, post(b"400000000"))
    assert status == 413
    assert b"1,000,000 bytes" in response


def test_client_that_sends_a_refused_body_first_gets_the_response(port):
    assert ask(port, post(b"8000000"), bytes(8_000_000))[0] == 413


@pytest.mark.slow
def test_slow_clients_are_disconnected_and_block_no_others(port, hasty):
    slow = [connect(port) for _ in range(3 * WORKERS)]
    started = time.monotonic()
    for number, client in enumerate(slow):
        client.sendall([b"", GET[:9], post(b"100", b"x")][number % 3])
    assert ask(port, GET)[0] == 200
    num_sent = 0
    with contextlib.suppress(ConnectionError):
        while num_sent < 100:  # a byte now and then does not extend the time
            slow[2].sendall(b"x")
            num_sent += 1
            time.sleep(0.1)
    assert num_sent < 50
    assert [read(client)[0] for client in slow[:2]] == [408, 408]
    assert time.monotonic() - started < 15
    for client in slow:
        client.close()


@pytest.mark.slow
def test_client_that_does_not_read_is_disconnected(serve, hasty):
    with serve(LocalServer(lambda request: Response(bytes(50_000_000), "text/plain"))) as server:
        with connect(server.server_port) as client:
            client.sendall(GET)
            time.sleep(1.5)
            status, response = read(client)
    assert len(response) < 50_000_000


def test_eight_requests_are_answered_at_once_and_the_others_wait(serve):
    num_active = 0
    most_active = 0
    lock = threading.Lock()

    def answer(request):
        nonlocal num_active, most_active
        with lock:
            num_active += 1
            most_active = max(most_active, num_active)
        time.sleep(0.1)
        with lock:
            num_active -= 1
        return echo(request)

    with serve(LocalServer(answer)) as server, ThreadPoolExecutor(30) as pool:
        threads = threading.active_count()
        answers = list(pool.map(lambda number: ask(server.server_port, post(b"2", b"%02d" % number)), range(30)))
        assert threading.active_count() <= threads + 30 + WORKERS
    assert [status for status, _ in answers] == 30 * [200]
    assert [response[-2:] for _, response in answers] == [b"%02d" % number for number in range(30)]
    assert most_active == WORKERS == 8


@pytest.mark.slow
def test_connections_beyond_the_limit_are_closed(port):
    idle = [connect(port) for _ in range(MAX_CONNECTIONS)]
    time.sleep(0.2)
    with connect(port) as client:
        client.settimeout(5)
        with contextlib.suppress(ConnectionError):
            client.sendall(GET)
        assert read(client) == (0, b"")
    for client in idle:
        client.close()
    time.sleep(0.2)
    assert ask(port, GET)[0] == 200


@pytest.mark.slow
def test_disconnected_clients_are_not_reported(serve, capfd, caplog):
    def answer(request):
        time.sleep(0.2)
        return Response(bytes(5_000_000), "text/plain")

    with serve(LocalServer(answer)) as server:
        for request in (b"", GET[:9], post(b"100", b"x"), GET, post(b"4", b"text")):
            for resets in (False, True):
                client = connect(server.server_port)
                client.sendall(request)
                if resets:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
        time.sleep(0.8)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_server_ends_quietly_while_clients_are_connected(serve, capfd, caplog):
    with serve(LocalServer(echo)) as server:
        clients = [connect(server.server_port) for _ in range(3)]
        clients[0].sendall(GET[:9])
        clients[1].sendall(GET)
        assert clients[1].recv(8) == b"HTTP/1.1"
    for client in clients:
        client.close()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
