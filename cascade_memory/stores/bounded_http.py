"""HTTP to a server that is not trusted: an answer has a limit of bytes and a limit of time, however the server sends it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from cascade_memory.errors import StoreError

LARGEST = 4 * 2**20  # bytes of an answer: parsed as JSON, nested empty lists of this size need 90 MB for a moment
_CONNECTING = 5.0  # seconds


def bounded_client(headers: Any, seconds: float, *, tls: bool) -> tuple[httpx.Client, BoundedTransport]:
    """Return a client that follows no redirect, and its transport, whose ``seconds`` are the only time limit."""
    transport = BoundedTransport(seconds, tls=tls)
    return httpx.Client(transport=transport, headers=headers, follow_redirects=False), transport


class BoundedTransport(httpx.BaseTransport):
    """Reads a whole answer, and passes on its status and its bytes.

    It ignores the headers of an answer: redirects, cookies, compression and charset. ``seconds`` limits the whole exchange,
    from connecting to the last byte. The time-outs of httpx do not: they start again with every byte that arrives.
    """

    def __init__(self, seconds: float, *, tls: bool) -> None:
        self.seconds = seconds
        self._clock = _Clock()
        context = ssl.create_default_context() if tls else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=context, network_backend=_InTime(self._clock), keepalive_expiry=40.0, max_connections=None
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer."""
        self._clock.start(self.seconds)
        url = request.url
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        with self._pool.stream(request.method, target, headers=headers, content=request.read()) as answer:
            body = bytearray()
            for part in answer.iter_stream():
                body += part
                if len(body) > LARGEST:
                    raise StoreError(f"the server answered with more than {LARGEST:,} bytes")
            return httpx.Response(answer.status, headers={"content-type": "application/json"}, content=bytes(body))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Clock(threading.local):
    """The moment at which the request of this thread must be finished."""

    _end = 0.0

    def start(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self, at_most: float = float("inf")) -> float:
        left = min(self._end - time.monotonic(), at_most)
        if left <= 0:
            raise httpcore.ReadTimeout("the server did not answer in time")
        return left


class _InTime(httpcore.NetworkBackend):
    """Makes connections that keep to the deadline of the clock, and ignore the time-outs that they are given.

    A host name is looked up once, at the first connection, because nothing can limit how long a lookup takes. A recall never
    makes the first connection.
    """

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._system = httpcore.SyncBackend()
        self._addresses: dict[str, list[str]] = {}

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._looked_up(host, port):
            try:
                stream = self._system.connect_tcp(address, port, self._clock.left(_CONNECTING), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._clock)
        raise failure

    def _looked_up(self, host: str, port: int) -> list[str]:
        if host not in self._addresses:
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError as error:
                raise httpcore.ConnectError(str(error)) from error
            self._addresses[host] = list(dict.fromkeys(str(one[4][0]) for one in found))
        return self._addresses[host]


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        for start in range(0, len(buffer), 2**16):  # each part may take the time that is left
            self._stream.write(buffer[start : start + 2**16], self._clock.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._clock.left(_CONNECTING)), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
