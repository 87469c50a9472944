"""The frameworks' own MCP clients, as their users write them."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from in_databases import named
from mcp_clients import SERVE, learns, served

adapters = pytest.importorskip("langchain_mcp_adapters.client")
llama = pytest.importorskip("llama_index.tools.mcp")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def connections(folder: Any, base: str | None) -> dict[str, Any]:
    if base is not None:
        return {"memory": {"transport": "streamable_http", "url": f"{base}/mcp"}}
    return {"memory": {"transport": "stdio", "command": sys.executable, "args": [*SERVE, named(folder)]}}


def answer_of(message: Any) -> Any:
    content = message.content if hasattr(message, "content") else message
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return json.loads(text)


def asking(tools: Any) -> Any:
    by_name = {one.name: one for one in tools}

    async def ask(tool: str, **arguments: Any) -> Any:
        return answer_of(await by_name[tool].ainvoke(arguments))

    return ask


@pytest.mark.long
async def test_langchain_with_a_process_for_every_call(folder):
    tools = await adapters.MultiServerMCPClient(connections(folder, None)).get_tools()
    await learns(folder, asking(tools))


@pytest.mark.slow
async def test_langchain_with_a_session_that_stays(folder):
    from langchain_mcp_adapters.tools import load_mcp_tools

    async with adapters.MultiServerMCPClient(connections(folder, None)).session("memory") as session:
        tools = await load_mcp_tools(session)
        await learns(folder, asking(tools))


@pytest.mark.slow
async def test_langchain_over_http(folder):
    with served(folder) as (base, _):
        tools = await adapters.MultiServerMCPClient(connections(folder, base)).get_tools()
        await learns(folder, asking(tools))


@pytest.mark.slow
async def test_a_langchain_agent_reports_through_the_server(folder):
    from langchain.agents import create_agent
    from scripted import ScriptedModel, call, steps

    async with adapters.MultiServerMCPClient(connections(folder, None)).session("memory") as session:
        from langchain_mcp_adapters.tools import load_mcp_tools

        def report(messages: list[Any]) -> Any:
            recalled = answer_of(next(one for one in messages if one.type == "tool"))
            return call("report_outcome", episode_id=recalled["episode_id"], reward=1, solution="fridge first")

        script = steps(call("recall_cases", query="cool some mug"), report, "done")
        agent = create_agent(ScriptedModel(script=script), await load_mcp_tools(session))
        answer = await agent.ainvoke({"messages": [("user", "cool some mug")]})
    assert "waits for confirmation" in str([one.content for one in answer["messages"]])


@pytest.mark.long
@pytest.mark.parametrize("over_http", [False, True])
async def test_llama_index(folder, over_http):
    with served(folder) as (base, _):
        if over_http:
            client = llama.BasicMCPClient(f"{base}/mcp")
        else:
            client = llama.BasicMCPClient(sys.executable, args=[*SERVE, named(folder)])
        tools = {one.metadata.name: one for one in await llama.McpToolSpec(client=client).to_tool_list_async()}

        async def ask(tool: str, **arguments: Any) -> Any:
            output = await tools[tool].acall(**arguments)
            return json.loads(output.raw_output.content[0].text)

        await learns(folder, ask)
