"""Version 2026-07-28 of the protocol: every request stands alone, without a handshake. Version 2 of the SDK speaks it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp
import pytest
from cancelling import Mine, nothing_open
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_clients import TASK, command, learns, plain, served

from cascade_memory import CascadeMemory
from cascade_memory.domain.waiting import Asker
from cascade_memory.mcp_server import build

NEWEST = "2026-07-28"
NO_SUCH_METHOD = -32_601
ANN = "anns-token-of-some-length"
Client: Any = getattr(mcp, "Client", None)
second = pytest.mark.skipif(Client is None, reason="version 1 of the SDK does not speak this version of the protocol")


@contextlib.asynccontextmanager
async def stdio(path: Path, *options: str, mode: str = "auto") -> AsyncIterator[Any]:
    """A client that finds out which version the server speaks, with a server process of its own."""
    program, *arguments = command(path, *options)
    async with Client(stdio_client(StdioServerParameters(command=program, args=arguments)), mode=mode) as client:
        yield client


async def ask(client: Any, tool: str, /, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


def post(base: str, method: str, version: str = NEWEST, **params: Any) -> tuple[int, dict[str, Any], Any]:
    """Send one request as the protocol wants it; return the status, the answer and the headers."""
    meta = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    request = urllib.request.Request(f"{base}/mcp", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), error.headers


@second
@pytest.mark.slow
@pytest.mark.parametrize(("mode", "version"), [("auto", NEWEST), ("legacy", "2025-11-25"), (NEWEST, NEWEST)])
async def test_over_standard_input_the_client_chooses_the_version(folder: Path, mode: str, version: str):
    async with stdio(folder, mode=mode) as client:
        assert client.protocol_version == version
        assert (client.server_info is None) == (mode == NEWEST), "who does not ask first is not told"
        assert len((await client.list_tools()).tools) == 6
        before = json.loads((await client.read_resource("cascade://stats")).contents[0].text)
        episode_id = (await ask(client, "recall_cases", query=TASK))["episode_id"]
        after = json.loads((await client.read_resource("cascade://stats")).contents[0].text)
        assert after["episodes"] == before["episodes"] + 1, "nothing that the client has read before is shown again"
        prompt = await client.get_prompt("solve_with_cases", {"task": TASK})
        assert TASK in prompt.messages[0].content.text
        refused = await client.call_tool("report_outcome", {"episode_id": "nowhere", "reward": 1})
        assert refused.is_error
    with CascadeMemory(folder) as memory:
        assert memory.episodes.get(episode_id).channel == "mcp"


@second
@pytest.mark.slow
async def test_it_learns_once_the_host_has_confirmed(folder: Path):
    async with stdio(folder) as client:

        async def asking(tool: str, **arguments: Any) -> dict[str, Any]:
            return await ask(client, tool, **arguments)

        await learns(folder, asking)


@second
async def test_nothing_is_promised_that_never_comes():
    """A stream of events would stay empty, and occupy a connection."""
    with CascadeMemory(embedder="hashing") as memory:
        async with Client(build(memory)) as client:
            assert client.protocol_version == NEWEST
            promised = plain(client.server_capabilities)
            flags = [flag for part in promised.values() for flag in part.values()]
            assert flags
            assert not any(flags)
            with pytest.raises(Exception, match="Method not found"):
                async with client.listen(resource_subscriptions=["cascade://stats"]):
                    pass


@second
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels_its_recall_leaves_no_episode_open(mode: str, monkeypatch: pytest.MonkeyPatch):
    left, leave = threading.Event(), Asker.leave

    def leaving(self: Asker, *, undo: bool) -> None:
        leave(self, undo=undo)
        left.set()

    class Waiting(Mine):
        begun, go_on = threading.Event(), threading.Event()

        def embed(self, texts: Any) -> Any:
            self.begun.set()
            assert self.go_on.wait(20)
            return super().embed(texts)

    embedder = Waiting()
    embedder.go_on.set()
    with CascadeMemory(embedder=embedder, deadline=60) as memory:
        memory.add("cool some mug", "put it into the fridge")
        embedder.begun.clear()
        embedder.go_on.clear()
        monkeypatch.setattr(Asker, "leave", leaving)
        async with Client(build(memory), mode=mode) as client:
            asking = asyncio.create_task(client.call_tool("recall_cases", {"query": "cool some cup"}))
            assert await asyncio.to_thread(embedder.begun.wait, 20)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(left.wait, 20), "the server has seen it"
            embedder.go_on.set()
            assert await nothing_open(memory)
        assert memory.health().failures == {}


@pytest.mark.slow
def test_on_http_every_request_stands_alone(folder: Path):
    with served(folder) as (base, _):
        status, answer, _ = post(base, "server/discover")
        if Client is None:  # the client then asks again, in an older version
            assert status == 400
            assert NEWEST in answer["error"]["message"]
            return
        assert (status, answer["result"]["supportedVersions"]) == (200, [NEWEST])
        recall = {"name": "recall_cases", "arguments": {"query": TASK}}
        status, answer, headers = post(base, "tools/call", **recall)
        assert status == 200
        assert answer["result"]["structuredContent"]["episode_id"]
        assert headers["Mcp-Session-Id"] is None
        status, answer, _ = post(base, "tools/call", version="2100-01-01", **recall)
        assert (status, answer["error"]["data"]["supported"]) == (400, [NEWEST])
        for gone in ("subscriptions/listen", "ping"):
            status, answer, _ = post(base, gone, notifications={})
            assert (status, answer["error"]["code"]) == (404, NO_SUCH_METHOD), gone


@second
@pytest.mark.slow
async def test_on_http_the_token_says_who_calls(folder: Path, tmp_path: Path):
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    (tmp_path / "tokens").write_text(f"ann {ANN}\n")
    with served(folder, "--token-file", str(tmp_path / "tokens")) as (base, _):
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {ANN}"}) as authorized,
            Client(streamable_http_client(f"{base}/mcp", http_client=authorized)) as client,
        ):
            assert client.protocol_version == NEWEST
            episode_id = (await ask(client, "recall_cases", query=TASK))["episode_id"]
        assert post(base, "server/discover")[0] == 401
    with CascadeMemory(folder) as memory:
        assert memory.episodes.get(episode_id).actor == "ann"
