"""A server on the loopback device that speaks OpenAI's chat protocol, and fails as told. Not a test."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

from hf_mwp.solver.labelling import chat_client


USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


class ChatServer:
    """
    The server; a context manager. `reply` is called with the text of the last message and returns the reply's text.
    `faults` are used first, one a request:

    - a status, or a pair of a status and headers;
    - a text, which is the body of a reply with status 200;
    - `"hang"` (no reply until the server ends), `"disconnect"` (half of the body, then the connection is closed).
    """

    def __init__(self, reply, usage=USAGE, finish_reason="stop"):
        self.reply = reply
        self.usage = usage
        self.finish_reason = finish_reason
        self.faults = []
        self.requests = []  # bodies
        self.headers = []
        self.most_at_once = 0
        self.ended = threading.Event()
        self._at_once = 0
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"chat": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def counted(self):
        with self.lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        yield
        with self.lock:
            self._at_once -= 1


class _Handler(BaseHTTPRequestHandler):
    chat: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        with self.chat.counted():
            self._answer()

    def _answer(self):
        chat = self.chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with chat.lock:
            chat.requests.append(body)
            chat.headers.append(dict(self.headers))
            fault = chat.faults.pop(0) if chat.faults else None
        if self.path != "/v1/chat/completions":
            fault = 404
        if fault == "hang":
            chat.ended.wait(10)
            self.close_connection = True
        elif isinstance(fault, int):
            self._send({"error": {"message": f"fault {fault}"}}, fault)
        elif isinstance(fault, tuple):
            self._send({"detail": "try again"}, *fault)
        else:
            message = {"role": "assistant", "content": chat.reply(body["messages"][-1]["content"])}
            choice = {"index": 0, "finish_reason": chat.finish_reason, "message": message}
            content = {"id": "1", "model": body["model"], "choices": [choice]}
            if chat.usage is not None:
                content["usage"] = chat.usage
            self._send(fault if fault not in (None, "disconnect") else content, is_cut=fault == "disconnect")

    def _send(self, content, status=200, headers=None, is_cut=False):
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = is_cut


@contextmanager
def chat_server(reply, **options):
    """A [`ChatServer`], reachable though the tests are offline; requests are repeated without delay."""
    with ChatServer(reply, **options) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(chat_client, "FIRST_DELAY", 0.001)
        patch.delenv("LLM_API_KEY", raising=False)
        yield server
