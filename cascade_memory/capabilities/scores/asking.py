"""Asks a platform for JSON over HTTP. The key goes to that platform alone, and into no message, log or ``repr``."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Generator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cascade_memory.domain.plain_json import parsed
from cascade_memory.errors import InvalidInput, PlatformFailed

if TYPE_CHECKING:
    import httpx

SECONDS = 30.0  # for one answer, from the first byte that is sent to the last one that arrives
LARGEST = 8 * 2**20  # bytes of an answer
TRIES = 5
LONGEST_PAUSE = 60.0  # seconds before the next try, even if the platform asks for more
_HERE = ("127.0.0.1", "localhost", "::1")
_PASSING = (429, 500, 502, 503, 504)  # what may be well a moment later
_KEYS, _GONE, _MOVED = (401, 403), (404, 410), range(300, 400)


def setting(*names: str, default: str | None = None) -> str:
    """Return the first of some environment variables that is set; raise ``InvalidInput`` if none is and there is no default.

    >>> setting("CASCADE_NO_SUCH_VARIABLE", default="https://api.smith.langchain.com")
    'https://api.smith.langchain.com'
    """
    found = next((value for name in names if (value := os.environ.get(name, "").strip())), default)
    if found is None:
        raise InvalidInput(f"set the environment variable {' or '.join(names)}")
    if not (found.isascii() and found.isprintable()):
        del found, value  # it may be a key, and a traceback may show local variables
        raise InvalidInput(f"the environment variable {' or '.join(names)} has characters that no key and no address has")
    return found


def address(url: str, *, of: str, secret: bool) -> str:
    """Check the address of a platform, and return it without a slash at its end.

    With ``secret``, a key will be sent there: only over https, or to this machine.

    >>> address("http://localhost:3000/", of="Langfuse", secret=True)
    'http://localhost:3000'
    """
    parts = None
    with contextlib.suppress(ValueError):
        found = urlsplit(url)
        parts = found if found.scheme in ("http", "https") and found.hostname and found.port != 0 else None
    if parts is None or any(one in url for one in "?#@\\") or any(one.isspace() for one in url):
        # The message does not repeat the address, since it may contain a password.
        raise InvalidInput(f"the address of {of} must look like https://host, without a key or a password in it")
    if secret and parts.scheme == "http" and parts.hostname not in _HERE:
        raise InvalidInput(f"the address of {of} begins with http://, so anybody on the way could read the key: use https://")
    return url.rstrip("/")


class Platform:
    """The API of one platform.

    Args:
        name: Its name in messages.
        url: Where its API begins.
        headers: Sent with each request; they contain the key.
        keys: The environment variables of the key, for messages.

    >>> Platform("LangSmith", "https://api.smith.langchain.com", headers={"x-api-key": "k"}, keys="LANGSMITH_API_KEY")
    <LangSmith at api.smith.langchain.com>
    """

    def __init__(self, name: str, url: str, *, headers: Mapping[str, str], keys: str) -> None:
        self.name, self._url, self._keys = name, url, keys
        self._host = urlsplit(url).hostname
        self._headers = _Headers({**headers, "accept": "application/json", "accept-encoding": "identity"})
        self._client: httpx.Client | None = None
        self._deadline = _Deadline()

    def __repr__(self) -> str:
        """Show no key."""
        return f"<{self.name} at {self._host}>"

    def __enter__(self) -> Platform:
        """Open the connection."""
        import httpx  # takes a tenth of a second, so it is not imported at the start of every command

        # A proxy that the environment names could read what is sent to http://; of https:// it sees a tunnel only. Without
        # TLS, no certificates need to be loaded.
        tls = self._url.startswith("https:")
        self._client = httpx.Client(follow_redirects=False, trust_env=tls, verify=tls, timeout=SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def get(self, path: str, **asked: object) -> Any:
        """Return the JSON that the platform answers with; raise ``PlatformFailed`` if it gives none after several tries.

        A parameter that is None is left out, and a list is written several times.
        """
        query = {name: value for name, value in asked.items() if value is not None}
        why = pause = None
        for number in range(TRIES):
            if why is not None:
                time.sleep(_pause(number, pause))
            status, body, pause, why = self._once(path, query)
            if status == 200:
                return self._read(body)
            if status is not None and status not in _PASSING:
                raise self.failed(self._refused(status, path))
            why = why or f"it answered {path} with status {status}"
        raise self.failed(f"{why}, {TRIES} times")

    def failed(self, why: str) -> PlatformFailed:
        """Return the error for a reason."""
        return PlatformFailed(f"{self.name} at {self._host}: {why}")

    def _read(self, body: bytes) -> Any:
        try:
            found = parsed(body.decode())
        except ValueError:
            found = None
        if found is None:
            raise self.failed("its answer is no JSON that can be read; does the address lead to its API?")
        return found

    def _refused(self, status: int, path: str) -> str:
        if status in _KEYS:
            return (
                f"it does not accept the key (status {status}): it is wrong, expired or not allowed to read; see {self._keys}"
            )
        if status in _MOVED:
            return f"it redirects {path} (status {status}); the key follows no redirect, so name the address that it leads to"
        if status in _GONE:
            return f"it has nothing at {path} (status {status}): is the address right, and the version new enough?"
        return f"it refuses what it was asked at {path} (status {status})"

    def _once(self, path: str, query: Mapping[str, Any]) -> tuple[int | None, bytes, str | None, str | None]:
        """Return the status, the body, and for how long to wait; or None, and why there is no answer.

        An exception of httpx refers to the request and so to the key: none is passed on, not even as the cause of another.
        """
        import httpx

        assert self._client is not None, "a platform is asked within its block"
        body, said = bytearray(), f"it did not answer within {SECONDS:g} seconds"
        asked: dict[str, Any] = {"params": query, "headers": self._headers, "extensions": {"trace": self._deadline.connected}}
        with self._deadline.after(SECONDS):
            try:
                with self._client.stream("GET", f"{self._url}{path}", **asked) as answer:
                    said = f"its answer was not complete after {SECONDS:g} seconds"
                    if answer.headers.get("content-encoding", "identity") != "identity":
                        return None, b"", None, "its answer is compressed, which it was asked not to be"
                    for part in answer.iter_raw() if answer.status_code == 200 else ():
                        body += part
                        if len(body) > LARGEST:
                            return None, b"", None, f"its answer has more than {LARGEST:,} bytes"
                    if not self._deadline.passed:  # else the body may end where the connection was cut
                        return answer.status_code, bytes(body), answer.headers.get("retry-after"), None
            except httpx.TimeoutException:
                pass
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                if not self._deadline.passed:
                    return None, b"", None, f"it cannot be reached, or closed the connection ({type(error).__name__})"
        return None, b"", None, said


class _Headers(dict[str, str]):
    """They contain the key, and tracebacks may show local variables."""

    def __repr__(self) -> str:
        return f"<{len(self)} headers>"


class _Deadline:
    """Cuts a connection on which an answer takes too long: httpx limits each wait alone, and headers may come byte by byte."""

    def __init__(self) -> None:
        self.passed = False
        self._socket: socket.socket | None = None  # of the connection, which serves one request after the other

    def connected(self, event: str, found: Mapping[str, Any]) -> None:
        """Take notice of what httpx does."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = found["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut()

    @contextlib.contextmanager
    def after(self, seconds: float) -> Generator[None, None, None]:
        """Return a block after whose begin the connection is cut."""
        self.passed = False
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # it may be cutting, and must not cut the next request

    def _cut(self) -> None:
        self.passed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed already
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # wakes who reads, which a mere close does not


def _pause(number: int, asked: str | None) -> float:
    """Return how many seconds to wait after a try: what the platform asked for (a number or a date), or ever longer."""
    seconds = 2.0 ** (number - 1) * random.uniform(0.5, 1.0)
    if asked is not None:
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # neither a number nor a date: as if it had not asked
            seconds = float(asked) if asked.strip().isdigit() else parsedate_to_datetime(asked).timestamp() - time.time()
    return min(max(seconds, 0.0), LONGEST_PAUSE)
