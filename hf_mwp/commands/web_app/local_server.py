"""HTTP server for a page on this machine, with limits on time, memory and threads, and checks of host and origin."""

import asyncio
import io
import ipaddress
import os
import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, parse_headers
from typing import Self


MAX_HEAD = 16_384  # bytes of the request line and the headers
MAX_BODY = 1_000_000  # bytes
MAX_CONNECTIONS = 64  # further ones are closed
SECONDS = 10  # for a client to send its request, and again to receive the response
WORKERS = 8  # requests that are answered at the same time; the others wait

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})
_REQUEST_LINE = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.[01]")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s\[\]:@/\\]+))(?::\d+)?", flags=re.IGNORECASE)


class RequestError(Exception):
    """Request that is refused with an HTTP status."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Request:
    """Request of a client."""

    method: str
    path: str  # without the query
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """Response to a request."""

    content: bytes
    content_type: str
    status: HTTPStatus = HTTPStatus.OK


class LocalServer:
    """
    Server that answers one request per connection, and reads a request only within the limits of this module.

    An event loop reads the requests, so that a slow client occupies no thread; `WORKERS` threads answer them. Other
    sites that are open in a browser can send requests to this machine, too. They are refused: the `Host` must be a
    loopback name or `host`, and an `Origin` must be that of the page.

    Args:
        answer (`Callable[[Request], Response]`): Function that answers a request. It is called in several threads, and
            may raise [`RequestError`].
        host (`str`, *optional*, defaults to `"127.0.0.1"`): Address of the server. For `0.0.0.0` or `::`, all
            addresses of this machine, the `Host` may be any IP address.
        port (`int`, *optional*, defaults to 0): Port; 0 is any free one.

    Raises:
        OSError: If the address or port cannot be used.
        OverflowError: If the port is not between 0 and 65535.
    """

    def __init__(self, answer: Callable[[Request], Response], host: str = "127.0.0.1", port: int = 0) -> None:
        self.answer = answer
        self.host = host.lower()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
        self.server_port = self._socket.getsockname()[1]
        self._num_connections = 0
        self._started = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.server_close()

    @property
    def url(self) -> str:
        """Return the address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_port}/"

    def serve_forever(self) -> None:
        """Answer requests until `shutdown` is called in another thread, or the process is interrupted."""
        asyncio.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, which must have been called in another thread."""
        self._started.wait()
        self._loop.call_soon_threadsafe(self._stopped.set)

    def server_close(self) -> None:
        """Close the socket of the server."""
        self._socket.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._workers = ThreadPoolExecutor(WORKERS)
        server = await asyncio.start_server(self._serve_connection, sock=self._socket, limit=MAX_HEAD)
        self._started.set()
        try:
            await self._stopped.wait()
        finally:
            server.close()
            self._workers.shutdown(wait=False, cancel_futures=True)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._num_connections += 1
        try:
            if self._num_connections <= MAX_CONNECTIONS:
                response = await self._response(reader)
                async with asyncio.timeout(SECONDS):
                    await _send(response, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # The client has left or is too slow, or the server ends.
        finally:
            self._num_connections -= 1
            writer.transport.abort()

    async def _response(self, reader: asyncio.StreamReader) -> Response:
        try:
            async with asyncio.timeout(SECONDS):
                request = await self._read_request(reader)
            return await self._loop.run_in_executor(self._workers, self._answer, request)
        except TimeoutError:
            return _refusal(HTTPStatus.REQUEST_TIMEOUT, f"The request was not complete after {SECONDS} seconds.")
        except RequestError as error:
            return _refusal(error.status, str(error))

    def _answer(self, request: Request) -> Response:
        try:
            return self.answer(request)
        except RequestError:
            raise
        except Exception as error:
            # The message of the error is not shown, since it may contain the text of a user.
            print(f"hf-mwp app: a request failed ({type(error).__name__}).", file=sys.stderr)
            if os.environ.get("HF_MWP_TRACEBACK"):
                traceback.print_exc()
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "The request failed.")

    async def _read_request(self, reader: asyncio.StreamReader) -> Request:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            headers = parse_headers(io.BytesIO(rest))
        except (asyncio.LimitOverrunError, HTTPException):
            fault = f"The headers are longer than {MAX_HEAD:,} bytes, or too many."
            raise RequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, fault) from None
        match = _REQUEST_LINE.fullmatch(line)
        if match is None or headers.defects:
            raise RequestError(HTTPStatus.BAD_REQUEST, "This is not a request in HTTP/1.1.")
        self._check_sender(headers)
        method = match[1].decode()
        length = _body_length(headers) if method == "POST" else 0
        path = match[2].decode().partition("?")[0]
        return Request(method, path, await reader.readexactly(length))

    def _check_sender(self, headers: HTTPMessage) -> None:
        """Refuse requests for another host (DNS rebinding) and requests from the pages of other sites."""
        hosts = headers.get_all("Host", [])
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None:
            raise RequestError(HTTPStatus.BAD_REQUEST, "The request must have one valid `Host`.")
        name = (match[1] or match[2]).lower()
        if name not in LOOPBACK | {self.host} and not (self.host in ALL_ADDRESSES and _is_address(name)):
            fault = f"The page is served for {self.host}, not for the host of this request. See `hf-mwp app --host`."
            raise RequestError(HTTPStatus.FORBIDDEN, fault)
        for origin in headers.get_all("Origin", []):
            if origin.partition("://")[2].lower() != hosts[0].lower():
                raise RequestError(HTTPStatus.FORBIDDEN, "Only the page itself may send requests.")


def _body_length(headers: HTTPMessage) -> int:
    lengths = headers.get_all("Content-Length", [])
    if not lengths or "Transfer-Encoding" in headers:
        raise RequestError(HTTPStatus.LENGTH_REQUIRED, "The request must have a `Content-Length`, and no chunks.")
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdecimal()):
        raise RequestError(HTTPStatus.BAD_REQUEST, "`Content-Length` must be one number.")
    if len(lengths[0]) > 18 or int(lengths[0]) > MAX_BODY:
        raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The text is longer than {MAX_BODY:,} bytes.")
    return int(lengths[0])


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(status: HTTPStatus, reason: str) -> Response:
    return Response(reason.encode(), "text/plain; charset=utf-8", status)


async def _send(response: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a response, and read until the client closes the connection: closed with unread data, it would be reset,
    and the client might not see the response."""
    lines = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.content)}",
        "Connection: close",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        # The browser must not load anything from other hosts, whatever the text of a problem contains.
        "Content-Security-Policy: default-src 'self'",
    )
    head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
    writer.write(head.encode() + response.content)
    await writer.drain()
    writer.write_eof()
    while await reader.read(MAX_HEAD):
        pass
