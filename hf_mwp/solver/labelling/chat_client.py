"""Client for servers with OpenAI's chat protocol, with retries and errors that say what to do."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from hf_mwp.utils.usage_error import UsageError


if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


# Seconds before the first and the last repetitions; each delay is twice the last.
FIRST_DELAY = 0.5
MAX_DELAY = 60.0
MAX_FAILURES = 8  # successive requests without a usable reply, after which the server is considered broken
ATTEMPTS_AT_START = 2  # attempts of a request to a server that has not replied yet and may not exist
NO_KEY = "none"  # sent instead of a key, because the client would otherwise send the user's Hub token to any server
_HUB_DOMAINS = (".huggingface.co", ".huggingface.cloud", ".hf.space")
_TRANSIENT = frozenset({408, 409, 425, 429})  # and all statuses from 500
_DENIED = frozenset({401, 402, 403})


class ReplyError(Exception):
    """Error if the server returned no usable reply to a request, also after repetitions."""


@dataclass(frozen=True)
class ChatReply:
    """Reply of a language model, with the numbers of tokens (`None` if the server does not state them)."""

    text: str
    is_complete: bool  # false if the reply was cut at the maximum number of tokens
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class ChatClient:
    """
    Client for the chat completions of a language model. Several threads may use it.

    Args:
        endpoint (`str`): URL of the server, such as `http://127.0.0.1:8080/v1`.
        llm (`str`): Name of the model on the server.
        api_key (`str`, *optional*): Key of the server. Servers of Hugging Face get the user's Hub token by default.
        timeout (`float`, *optional*, defaults to 120.0): Maximum seconds to wait for a reply.
        retries (`int`, *optional*, defaults to 5): Maximum number of repetitions of a request after a timeout, a
            broken connection, an invalid reply, or the status 408, 409, 425, 429 or 500 and above.
    """

    def __init__(
        self, endpoint: str, llm: str, api_key: str | None = None, timeout: float = 120.0, retries: int = 5
    ) -> None:
        address = _address(endpoint)
        if api_key is not None and not api_key.isascii():
            raise UsageError("--llm_api_key: a key has only ASCII characters.")
        from huggingface_hub import InferenceClient

        is_hub = address.scheme == "https" and f".{address.hostname}".endswith(_HUB_DOMAINS)
        if not api_key:
            api_key = None if is_hub else NO_KEY
        self.endpoint = endpoint
        self.llm = llm
        self.retries = retries
        self._client = InferenceClient(base_url=endpoint, api_key=api_key, timeout=timeout)
        self._stopped = threading.Event()
        self._failures = 0
        self.has_replied = False
        self.last_fault = ""

    def start(self) -> None:
        """Allow repetitions, after [`~ChatClient.stop`]."""
        self._stopped.clear()

    def stop(self) -> None:
        """Make requests in other threads fail instead of being repeated."""
        self._stopped.set()

    def ask(self, messages: Sequence[dict[str, str]], **parameters: Any) -> ChatReply:
        """
        Return the reply to the messages of a chat. `parameters` are passed to `InferenceClient.chat_completion`.

        Raises:
            ReplyError: If the server returned no usable reply to this request.
            UsageError: If the server cannot be reached, denies access, does not have the model, or returned no usable
                reply to several successive requests.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                reply = self._request(messages, parameters)
            except _Fault as fault:
                if self._stopped.is_set():
                    raise ReplyError("the run was stopped") from fault
                limit = self.retries + 1
                if fault.needs_server and not self.has_replied:
                    limit = min(limit, ATTEMPTS_AT_START)
                if fault.is_transient and attempt < limit:
                    delay = fault.delay
                    if delay is None:
                        delay = FIRST_DELAY * 2 ** (attempt - 1)
                    self._stopped.wait(min(delay, MAX_DELAY))
                    continue
                raise self._give_up(fault) from fault
            self.has_replied = True
            self._failures = 0
            return reply

    def _give_up(self, fault: "_Fault") -> Exception:
        """Return the error for a request that failed."""
        self._failures += 1
        self.last_fault = f"{self.endpoint}: {fault}"
        is_missing = fault.needs_server and not self.has_replied
        if fault.is_fatal or is_missing:
            return UsageError(self.last_fault)
        if self._failures >= MAX_FAILURES:
            return UsageError(f"{self._failures} requests in succession failed. The last one: {self.last_fault}")
        return ReplyError(str(fault))

    def _request(self, messages: Sequence[dict[str, str]], parameters: dict[str, Any]) -> ChatReply:
        """Send a request once. Raises `_Fault`."""
        from huggingface_hub.errors import HfHubHTTPError, HTTPError, InferenceTimeoutError, OfflineModeIsEnabled

        try:
            output = self._client.chat_completion(list(messages), model=self.llm, **parameters)
            return _read_output(output)
        except OfflineModeIsEnabled as error:
            remedy = "HF_HUB_OFFLINE is set, so that `huggingface_hub` sends no request, also not to this server. "
            raise _Fault(f"{remedy}Set HF_HUB_OFFLINE=0.", is_fatal=True) from error
        except InferenceTimeoutError as error:
            remedy = "Set a longer --llm_timeout or a lower --llm_workers"
            fault = f"no reply within {self._client.timeout:g} seconds. {remedy}."
            raise _Fault(fault, is_transient=True, needs_server=True) from error
        except HfHubHTTPError as error:
            raise self._fault_of_status(error) from error
        except HTTPError as error:
            fault = f"the server cannot be reached ({_one_line(str(error) or type(error).__name__)}). "
            raise _Fault(f"{fault}Start it, or correct the URL.", is_transient=True, needs_server=True) from error
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            fault = "the reply does not have the form of OpenAI's chat completions. Is this the URL of such a server?"
            raise _Fault(fault, is_transient=True, needs_server=True) from error

    def _fault_of_status(self, error: "HfHubHTTPError") -> "_Fault":
        status = error.response.status_code
        detail = _error_message(error)
        if status in _DENIED:
            keys = "Set the key with --llm_api_key or LLM_API_KEY, for servers of Hugging Face with HF_TOKEN"
            return _Fault(f"status {status}, access denied{detail}. {keys}.", is_fatal=True)
        if status in (404, 405):
            remedy = "Check the URL (does it need /v1 at its end?) and the model's name (--llm)"
            return _Fault(f"status {status} for model {self.llm!r}{detail}. {remedy}.", is_fatal=True)
        is_transient = status in _TRANSIENT or status >= 500
        delay = error.response.headers.get("Retry-After", "")
        seconds = float(delay) if delay.isascii() and delay.isdigit() else None
        return _Fault(f"status {status}{detail}.", is_transient=is_transient, delay=seconds)


def _address(endpoint: str) -> SplitResult:
    """Return the parts of a server's URL. Raises `UsageError` if it cannot be used."""
    try:
        address = urlsplit(endpoint)
        is_url = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # the port or the brackets of an IPv6 address
        is_url = False
    if not is_url:
        raise UsageError(f"--endpoint: expected a URL such as http://127.0.0.1:8080/v1, got {endpoint!r}.")
    if address.username or address.password:
        raise UsageError("--endpoint must not contain a password, which would be written to a file.")
    return address


class _Fault(Exception):
    """Fault of a request. `needs_server` marks the faults of a missing server, or of another program in its place."""

    def __init__(
        self,
        message: str,
        *,
        is_fatal: bool = False,
        is_transient: bool = False,
        needs_server: bool = False,
        delay: float | None = None,
    ):
        super().__init__(message)
        self.is_fatal = is_fatal
        self.is_transient = is_transient
        self.needs_server = needs_server
        self.delay = delay


def _read_output(output: Any) -> ChatReply:
    """Return the reply in an output of `InferenceClient`, whose fields have any type."""
    choice = output.choices[0]
    text = choice.message.content
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise TypeError("the content of the message is no text")
    usage = output.usage
    return ChatReply(
        text,
        choice.finish_reason != "length",
        _int_or_none(getattr(usage, "prompt_tokens", None)),
        _int_or_none(getattr(usage, "completion_tokens", None)),
    )


def _int_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _error_message(error: "HfHubHTTPError") -> str:
    """Return the server's description of an error, `" (...)"`, or `""`."""
    try:
        text = error.response.text
    except Exception:  # the body may be missing or broken; the status is sufficient
        return ""
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    while isinstance(content, dict):
        content = content.get("error") or content.get("message") or content.get("detail")
    if isinstance(content, str):
        text = content
    message = _one_line(text)
    return f" ({message})" if message else ""


def _one_line(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 200 else f"{line[:200]}..."
