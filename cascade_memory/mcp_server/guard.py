"""Protects the server on HTTP: a bearer token, a check of origins, limits on size and rate, and a health check."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from cascade_memory.domain.waiting import Asker, asked_by
from cascade_memory.mcp_server.clients import ASKING, Clients, Tokens
from cascade_memory.memory.threads import in_thread
from cascade_memory.serving.asgi import App, Receive, Scope, Send, answer
from cascade_memory.serving.crowd import VOUCH

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_BYTES = 1_000_000
_TOO_LARGE = f"a request may have at most {MAX_BYTES:,} bytes"
_MOST_CLIENTS = 10_000
_BEARER = (b"www-authenticate", b"Bearer")
PATIENCE = 30  # seconds for the body of a request
_BUSY = (503, {"error": "too many requests are being answered; try again in a moment"})


class Guard:
    """An ASGI application that checks each request before it passes the request to the server.

    Args:
        app: The server.
        token: The token that clients must send in ``Authorization: Bearer ...``, or a mapping of such
            tokens to the names of their clients, which are recorded with all that the clients do; None: no token is needed.
        per_minute: The allowed requests per minute and client (by its name, or else by its address); 0 for no limit. Requests
            without a token are counted separately.
        alive: Called for ``/health``, at most once a second; it raises if the memory cannot be read.
    """

    def __init__(self, app: App, *, token: Tokens, per_minute: int, alive: Callable[[], object]) -> None:
        self._app, self._alive = app, alive
        self._clients = Clients(token)
        self._rate, self._strangers = Rate(per_minute), Rate(per_minute)
        self._health: asyncio.Future[bool] | None = None
        self._asked_at = -math.inf

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, pass it on to the server, or answer ``/health``."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/health":
            well = await self._is_well()
            await answer(send, 200 if well else 503, {"status": "ok" if well else "failing"})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, said = refusal
            await answer(send, status, said, *([_BEARER] if status == 401 else []))
            return
        try:
            body = await asyncio.wait_for(_body(receive), PATIENCE)
        except asyncio.TimeoutError:
            await answer(send, 408, {"error": f"the request did not arrive within {PATIENCE} seconds"})
            return
        if body is None:
            await answer(send, 413, {"error": _TOO_LARGE})
        elif not _is_json(body):
            await answer(send, 400, {"error": "the body of a request must be JSON that is not nested too deeply"})
        else:
            await self._answered(scope, body, receive, send)

    async def _answered(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        if not scope.get(VOUCH, _always)():
            await answer(send, *_BUSY)
            return
        asker, answering = Asker(), False
        left = asyncio.ensure_future(receive())  # all that can follow the body: the client leaves

        def leave(_: object) -> None:
            if not answering:  # it does not learn the id of the episode that its recall opens
                asker.leave(undo=True)

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal answering
            answering = True
            await send(message)

        left.add_done_callback(leave)
        asking = ASKING.set(self._clients.name_of(_headers(scope).get(b"authorization", b"")))
        try:
            with asked_by(asker):
                await self._app(scope, _once(body, left), sending)
        finally:
            answering = True
            left.cancel()
            ASKING.reset(asking)

    def _refusal(self, scope: Scope) -> tuple[int, dict[str, str]] | None:
        headers = _headers(scope)
        foreign = _is_foreign(headers)
        authorization = headers.get(b"authorization", b"")
        known = self._clients.knows(authorization)
        # Requests without the token, or from foreign web pages, do not use up the rate limit of legitimate clients.
        rate = self._rate if known and not foreign else self._strangers
        address = str((scope.get("client") or ("?",))[0])
        name = self._clients.name_of(authorization)
        if not rate.allows(address if name is None else f"the client {name}"):
            return 429, {"error": "too many requests; wait a minute"}
        if foreign:
            return 403, {"error": "web pages from other machines may not call this server"}
        if scope["method"] != "POST":  # a GET would wait for events that never come, and occupy a connection
            return 405, {"error": "this server answers only POST: it sends no events"}
        if not known:
            return 401, {"error": "this server needs a token: send the header Authorization: Bearer TOKEN"}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BYTES:
            return 413, {"error": _TOO_LARGE}
        return None

    async def _is_well(self) -> bool:
        now = time.monotonic()
        if self._health is None or now - self._asked_at >= 1.0:
            self._asked_at, self._health = now, asyncio.ensure_future(self._looked())
        return await asyncio.shield(self._health)  # concurrent health checks share one answer

    async def _looked(self) -> bool:
        try:
            await in_thread(self._alive)
        except Exception:  # noqa: BLE001 - any failure means that the memory is unhealthy
            return False
        return True


def _headers(scope: Scope) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in scope["headers"]}


def _always() -> bool:
    return True


def _is_foreign(headers: dict[bytes, bytes]) -> bool:
    """Say whether a web page from another machine calls. Browsers send the page's origin, or at least that it is cross-site."""
    origin = headers.get(b"origin")
    elsewhere = origin is not None and not _is_here(origin.decode("latin-1"))
    return elsewhere or headers.get(b"sec-fetch-site", b"").lower() == b"cross-site"


def _is_here(origin: str) -> bool:
    """Say whether a web page comes from this machine."""
    try:
        return urlsplit(origin).hostname in LOOPBACK
    except ValueError:  # no address at all
        return False


async def _body(receive: Receive) -> bytes | None:
    """Read the body of a request; None if it is longer than the limit, whatever its header says."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BYTES:
            return None
        more = bool(message.get("more_body", False))
    return b"".join(parts)


def _is_json(body: bytes) -> bool:
    """Say whether a body is JSON that the server can handle, without deep nesting and lone surrogates."""
    try:
        found = json.loads(body.decode())  # strictly UTF-8: from bytes, json.loads would also accept other encodings
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _once(body: bytes, following: asyncio.Future[MutableMapping[str, Any]]) -> Receive:
    """Make a ``receive`` that first returns the body that was already read, and then what follows."""
    handed_out = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal handed_out
        if handed_out:
            return await asyncio.shield(following)
        handed_out = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class Rate:
    """A rate limit with a token bucket for each client.

    The buckets are refilled steadily. If there are too many, the longest idle ones are dropped.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = float(per_minute), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (requests left, time of that count)

    def allows(self, client: str) -> bool:
        """Take one request from a client's bucket; say whether there was one left.

        >>> rate = Rate(2, clock=lambda: 0.0)
        >>> [rate.allows("a"), rate.allows("a"), rate.allows("a"), rate.allows("b")]
        [True, True, False, True]
        """
        if not self._most:
            return True
        now = self._clock()
        left, since = self._buckets.pop(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._most / 60.0)
        allowed = left >= 1.0
        self._buckets[client] = (left - 1.0 if allowed else left, now)
        while len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return allowed
