"""Clients that cancel a call or disconnect in the middle of it: the episode that they never learn of does not stay open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cancelling import Mine, nothing_open
from mcp_clients import SERVE, asked, free_port
from waiting import wait_until

from cascade_memory import CascadeMemory
from cascade_memory.domain.waiting import Asker
from cascade_memory.mcp_server import build
from cascade_memory.mcp_server.connection import Server, settings
from cascade_memory.mcp_server.guard import Guard
from cascade_memory.mcp_server.sdk import http_app

shared = pytest.importorskip("mcp.shared.memory")
_PATIENCE = 20.0


class Waiting(Mine):
    """Waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def embed(self, texts: Any) -> Any:
        self.begun.set()
        assert self.go_on.wait(_PATIENCE)
        return super().embed(texts)


@pytest.fixture
def embedder() -> Iterator[Waiting]:
    embedder = Waiting()
    yield embedder
    embedder.go_on.set()


@pytest.fixture
def memory(embedder: Waiting) -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder=embedder, deadline=60) as memory:
        memory.add("cool some mug", "put it into the fridge")
        memory.cases.search("warm")
        embedder.begun.clear()
        yield memory


@contextlib.asynccontextmanager
async def session_with(memory: CascadeMemory) -> AsyncIterator[Any]:
    connect = getattr(shared, "create_connected_server_and_client_session", None)
    if connect is None:
        pytest.skip("this version of the SDK connects in another way")
    async with connect(build(memory)) as session:
        yield session


@pytest.mark.parametrize("what", ["tool", "prompt"])
async def test_a_request_that_the_client_cancels(memory: CascadeMemory, embedder: Waiting, what: str):
    from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

    async with session_with(memory) as session:
        embedder.go_on.clear()
        call = (
            session.call_tool("recall_cases", {"query": "cool a cup"})
            if what == "tool"
            else session.get_prompt("solve_with_cases", {"task": "cool"})
        )
        asking = asyncio.create_task(call)
        assert await asyncio.to_thread(embedder.begun.wait, _PATIENCE)
        params = CancelledNotificationParams(requestId=1)
        await session.send_notification(
            ClientNotification(CancelledNotification(method="notifications/cancelled", params=params))
        )
        with pytest.raises(Exception, match="cancelled"):
            await asking
        embedder.go_on.set()
        assert await nothing_open(memory)
        answer = await asked(session, "recall_cases", query="cool some cup")
        assert [one.id for one in memory.episodes.pending()] == [answer["episode_id"]]
    assert memory.health().failures == {}


@pytest.fixture
def url_port(memory: CascadeMemory) -> Iterator[int]:
    guarded = Guard(
        http_app(build(memory), host="127.0.0.1"), token=None, per_minute=0, alive=lambda: memory.episodes.knows("any")
    )
    port = free_port()
    server = Server(settings(guarded, host="127.0.0.1", port=port))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, _PATIENCE)
    yield port
    server.should_exit = True
    thread.join(_PATIENCE)


def post(port: int, tool: str, **arguments: Any) -> socket.socket:
    asked_for = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    body = json.dumps(asked_for).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
    connection.sendall(head.encode() + body)
    return connection


def test_a_client_that_disconnects_from_http(
    memory: CascadeMemory, embedder: Waiting, url_port: int, monkeypatch: pytest.MonkeyPatch
):
    left, leave = threading.Event(), Asker.leave

    def leaving(self: Asker, *, undo: bool) -> None:
        leave(self, undo=undo)
        left.set()

    monkeypatch.setattr(Asker, "leave", leaving)
    embedder.go_on.clear()
    connection = post(url_port, "recall_cases", query="cool a cup")
    assert embedder.begun.wait(_PATIENCE)
    connection.close()
    assert left.wait(_PATIENCE), "the server has seen it"
    embedder.go_on.set()
    assert asyncio.run(nothing_open(memory))
    with post(url_port, "recall_cases", query="cool some cup") as connection:
        answer = b""
        while b"episode_id" not in answer:
            answer += connection.recv(65_536)
    assert len(memory.episodes.pending()) == 1, "an answer that was sent keeps its episode"


@pytest.mark.long
def test_a_server_on_standard_input_whose_client_dies(tmp_path: Path):
    code = (
        "import sys, time\n"
        "from cascade_memory.encoders.hashing import HashingEmbedder\n"
        "embed = HashingEmbedder.embed\n"
        "def slow(self, texts):\n"
        "    if 'cool' in texts[0]:\n"
        "        sys.stderr.write('asked\\n'); sys.stderr.flush(); time.sleep(1.0)\n"
        "    return embed(self, texts)\n"
        "HashingEmbedder.embed = slow\n"
        "from cascade_memory.cli import main\n"
        f"sys.argv = ['cascade-memory', *{[*SERVE[2:], str(tmp_path / 'm')]!r}]\n"
        "sys.exit(main())\n"
    )
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        memory.add("cool some mug", "put it into the fridge")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ), text=True, **pipes)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "recall_cases", "arguments": {"query": "cool a cup"}},
        },
    ]
    assert process.stdin is not None
    assert process.stderr is not None
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    said, seen = "", []
    while "asked" not in said:
        said = process.stderr.readline()
        assert said, f"the server has ended: {seen}"
        seen.append(said)
    process.stdin.close()
    process.wait(_PATIENCE)
    process.stderr.close()
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        assert memory.episodes.pending() == []
