"""Asks an ASGI application as a client that keeps to no rule: any bytes as path, query, body and headers, nothing is mended."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes, unquote

FORM = "application/x-www-form-urlencoded"
_PATIENCE = 60.0  # seconds until an answer counts as missing, on a machine that does much else
Pairs = Sequence[tuple[str, str | bytes]]


@dataclass(frozen=True)
class Answer:
    """What came back; ``took`` counts the seconds of the processor, on all threads."""

    status: int
    headers: dict[str, str]
    body: bytes
    took: float

    @property
    def text(self) -> str:
        return self.body.decode()


def encoded(pairs: Pairs) -> bytes:
    """Write fields as a form does, whatever their bytes."""
    return "&".join(f"{_quoted(name)}={_quoted(text)}" for name, text in pairs).encode()


@functools.lru_cache(512)  # the long ones are sent again and again
def _quoted(text: str | bytes) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, safe="")


class RawClient:
    """A client with an event loop of its own, and a cookie that somebody else got."""

    def __init__(self, application: Any, cookie: str = "") -> None:
        self._application, self._loop = application, asyncio.new_event_loop()
        self._usual = {b"host": b"127.0.0.1:8000", b"sec-fetch-site": b"same-origin", b"cookie": cookie.encode()}

    def __enter__(self) -> RawClient:
        return self

    def take_cookie(self, answer: Answer) -> None:
        """Go on with the cookie that an answer sets."""
        self._usual[b"cookie"] = answer.headers["set-cookie"].partition(";")[0].encode()

    def __exit__(self, *_: object) -> None:
        self._loop.close()

    def ask(
        self,
        method: str,
        path: str,
        query: bytes = b"",
        *,
        parts: Sequence[bytes | None] = (b"",),
        headers: dict[bytes, bytes] | None = None,
        more: Sequence[tuple[bytes, bytes]] = (),
    ) -> Answer:
        """Send a request; ``path`` is percent-encoded, and a part that is None hangs up. ``more`` are headers said again."""
        given = {**self._usual, **(headers or {})}
        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""},
            **{"method": method, "path": unquote(path), "raw_path": path.encode(), "query_string": query},
            **{"server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 5), "headers": [*given.items(), *more]},
        }
        began = time.process_time()
        sent = self._loop.run_until_complete(asyncio.wait_for(_answered(self._application, scope, parts), _PATIENCE))
        took = time.process_time() - began
        (start, *rest) = sent
        read = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], read, b"".join(one.get("body", b"") for one in rest), took)

    def post(self, path: str, pairs: Pairs, headers: dict[bytes, bytes] | None = None) -> Answer:
        """Send a form."""
        body = encoded(pairs)
        given = {b"content-type": FORM.encode(), b"content-length": str(len(body)).encode(), **(headers or {})}
        return self.ask("POST", path, parts=[body], headers=given)


async def _answered(application: Any, scope: dict[str, Any], parts: Sequence[bytes | None]) -> list[Any]:
    sent: list[Any] = []
    left = list(parts)

    async def receive() -> dict[str, Any]:
        part = left.pop(0) if left else None
        return {"type": "http.disconnect"} if part is None else {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    return sent
