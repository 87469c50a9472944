"""ASGI, as far as the servers speak it themselves: its types, and an answer that is a JSON object."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer(send: Send, status: int, body: Mapping[str, Any], *more: tuple[bytes, bytes]) -> None:
    """Answer with a JSON object and, if need be, more headers; 405 says that only POST is allowed.

    >>> import asyncio
    >>> async def show(message: MutableMapping[str, Any]) -> None:
    ...     print(message.get("status", message.get("body")))
    >>> asyncio.run(answer(show, 200, {"scores": 1}))
    200
    b'{"scores": 1}'
    """
    text = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode()), *more]
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
