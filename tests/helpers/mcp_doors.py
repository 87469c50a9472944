"""The two doors of the MCP server, in this process: what a client sends comes in as the bytes that it sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from mcp.server.stdio import stdio_server

from cascade_memory import CascadeMemory
from cascade_memory.mcp_server import Guard, http_app
from cascade_memory.mcp_server.lines import converse

Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]

_SCOPE: dict[str, Any] = {
    **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
    **{"path": "/mcp", "raw_path": b"/mcp", "root_path": "", "query_string": b""},
    **{"client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8_765)},
}
_HEADERS = [
    (b"host", b"127.0.0.1:8765"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def message(number: int, method: str, params: str = "{}") -> bytes:
    """Write a request with parameters that are JSON already."""
    return f'{{"jsonrpc": "2.0", "id": {number}, "method": "{method}", "params": {params}}}'.encode()


@contextlib.asynccontextmanager
async def http_door(memory: CascadeMemory, server: Any) -> AsyncIterator[Ask]:
    """Ask a server as a request over HTTP does, through its guard."""
    app = http_app(server, host="127.0.0.1")
    guarded = Guard(app, token=None, per_minute=0, alive=lambda: memory.episodes.knows("any"))

    async def ask(body: bytes) -> bytes:
        given, answer = [{"type": "http.request", "body": body, "more_body": False}], b""

        async def receive() -> dict[str, Any]:
            if not given:
                await asyncio.Event().wait()  # the client stays
            return given.pop()

        async def send(part: Any) -> None:
            nonlocal answer
            answer += part.get("body", b"")

        await guarded({**_SCOPE, "headers": [*_HEADERS, (b"content-length", b"%d" % len(body))]}, receive, send)
        return answer

    async with server.session_manager.run():
        yield ask


class _Lines:
    """What a server reads from its client, or writes to it, line by line."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self.queue.get()) is not None:
            yield line

    async def write(self, text: str) -> None:
        text.encode()  # as the stream of a process does
        self.queue.put_nowait(text)

    async def flush(self) -> None:
        pass


@contextlib.asynccontextmanager
async def stdio_door(memory: CascadeMemory, server: Any) -> AsyncIterator[Ask]:
    """Ask a server as a line on its standard input does."""
    sent, said = _Lines(), _Lines()

    async def serve() -> None:
        async with stdio_server(sent, said) as (reading, writing):  # type: ignore[arg-type]
            await converse(server, reading, writing)

    async def ask(body: bytes) -> bytes:
        assert b"\n" not in body
        await sent.write(body.decode(errors="replace") + "\n")
        while True:
            answer = await said.queue.get()
            assert answer is not None
            if not json.loads(answer).get("method"):
                return answer.encode()

    serving = asyncio.create_task(serve())
    try:
        await ask(message(0, "initialize", json.dumps(_HELLO)))
        await sent.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        yield ask
    finally:
        sent.queue.put_nowait(None)
        await asyncio.wait_for(serving, 30)
