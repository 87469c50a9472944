"""Clients of the MCP server, through the SDK's own code, whichever major version is installed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
from in_databases import named
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TASK = "cool some mug and put it on the table"

SERVE = ["-m", "cascade_memory", "serve", "mcp", "--path"]


def command(path: Path, *options: str) -> list[str]:
    return [sys.executable, *SERVE, named(path), *options]


@contextlib.asynccontextmanager
async def stdio(path: Path, *options: str) -> AsyncIterator[ClientSession]:
    """A session with a server process of its own."""
    async with started(sys.executable, [*SERVE, named(path), *options]) as session:
        yield session


@contextlib.asynccontextmanager
async def started(command: str, arguments: list[str], more: Mapping[str, str] | None = None) -> AsyncIterator[ClientSession]:
    """A session with a process that is started as a client's configuration says: ``more`` is its "env"."""
    parameters = StdioServerParameters(command=command, args=arguments, env={**os.environ, **(more or {})})
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def http(url: str) -> AsyncIterator[ClientSession]:
    """A session over streamable HTTP."""
    from mcp.client import streamable_http

    client = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    async with client(url) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        yield session


async def call(session: ClientSession, tool: str, /, **arguments: Any) -> Any:
    """Call a tool; return its JSON, or raise what it refused."""
    answer = await session.call_tool(tool, arguments)
    text = answer.content[0].text
    if getattr(answer, "isError", None) or getattr(answer, "is_error", None):
        raise RuntimeError(text)
    return json.loads(text)


def plain(model: Any) -> dict[str, Any]:
    """What goes over the wire, whichever version of the SDK names the fields."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def asked(session: Any, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool; the text and the structured answer must say the same, in the way that its schema says."""
    answer = plain(await session.call_tool(tool, arguments))
    (block,) = answer["content"]
    assert not answer.get("isError"), block
    data = answer["structuredContent"]
    assert json.loads(block["text"]) == data
    assert block["text"] == json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (schema,) = [plain(one)["outputSchema"] for one in (await session.list_tools()).tools if one.name == tool]
    jsonschema.validate(data, schema)
    undescribed = [name for name in data if name not in schema["properties"]]
    assert undescribed == []
    return data


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def served(path: Path, *options: str, pipesize: int = -1, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server process on HTTP, and its address; ``pipesize`` is how much its pipes hold (Linux)."""
    port = free_port()
    process = subprocess.Popen(
        command(path, "--transport", "http", "--port", str(port), *options),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pipesize=pipesize,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError(process.communicate()[1])
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{base}/health", timeout=5).close()
                break
            time.sleep(0.05)
        yield base, process
    finally:
        if process.poll() is None:
            process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            process.communicate(timeout=20)
        if process.poll() is None:
            process.kill()
            process.wait()


def confirm(folder: Path, episode_id: str) -> None:
    """As an operator does: look, then confirm what was seen."""

    def pending(*options: str) -> Any:
        command = [sys.executable, "-m", "cascade_memory", "review", "pending", str(folder), "--json", *options]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    seen = {one["episode_id"]: one["fingerprint"] for one in pending()["waiting"]}
    assert pending("--confirm", f"{episode_id}@{seen[episode_id]}")["confirmed"] == [episode_id]


async def learns(folder: Path, ask: Any) -> None:
    """``ask(tool, **arguments)`` goes wherever it goes: the host's word in between makes the difference."""
    first = await ask("recall_cases", query=TASK)
    assert len(first["cases"]) <= 1
    told = await ask("report_outcome", episode_id=first["episode_id"], reward=1, solution="fridge, then table")
    assert told["status"] == "waits for confirmation"
    before = await ask("recall_cases", query=TASK)
    assert "fridge, then table" not in str(before["cases"])
    confirm(folder, first["episode_id"])
    after = await ask("recall_cases", query=TASK)
    assert after["cases"][0]["solution"] == "fridge, then table"
