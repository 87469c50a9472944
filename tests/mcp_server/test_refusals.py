"""Arguments that are missing or of another type are refused with a sentence that a model can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_doors import message, stdio_door

from cascade_memory import CascadeMemory, Trust
from cascade_memory.mcp_server import build

_TICKET = "report_outcome needs ticket: the ticket that recall_cases returned with the episode_id"
_EPISODE = "report_outcome needs episode_id: the episode_id that recall_cases returned"
_BOOLEAN = "steps[0].failed must be true or false, not 'perhaps'"
_REPORT = {"episode_id": "e", "reward": 1}


async def said(memory: CascadeMemory, tool: str, arguments: Mapping[str, Any], **options: Any) -> str:
    """Call a tool that refuses; return what it says."""
    async with stdio_door(memory, build(memory, **options)) as ask:
        call = message(1, "tools/call", json.dumps({"name": tool, "arguments": arguments}))
        result = json.loads(await ask(call))["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    return block["text"]


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("recall_cases", {}, "recall_cases needs query: the task to find solved cases for"),
        ("recall_cases", {"query": None}, "query must be a text, not null"),
        ("report_outcome", {**_REPORT, "reward": "good"}, "reward must be a number from 0 to 1, not 'good'"),
        ("report_outcome", {"reward": "good"}, f"{_EPISODE}; reward must be a number from 0 to 1, not 'good'"),
        ("report_outcome", {**_REPORT, "steps": "none"}, "steps must be a list, not 'none'"),
        (
            "report_outcome",
            {**_REPORT, "steps": [{"failed": "perhaps"}]},
            "steps[0].failed must be true or false, not 'perhaps'",
        ),
        ("report_outcome", {**_REPORT, "steps": [3]}, "steps[0] must be an object, not 3"),
        ("check_action", {"episode_id": "e", "arguments": 7}, "arguments must be an object, not 7"),
        ("forget_cases", {"case_ids": [1, 2]}, "case_ids[0] must be a text, not 1"),
    ],
)
async def test_what_is_wrong_is_said_in_a_sentence(ram: CascadeMemory, tool: str, arguments: dict[str, Any], says: str):
    assert await said(ram, tool, arguments) == says


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_report_without_its_ticket_is_told_where_the_ticket_comes_from(trusted: bool):
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=True)) as memory:
        assert await said(memory, "report_outcome", _REPORT, trust_agent_rewards=trusted) == _TICKET


async def test_a_refusal_quotes_a_long_value_in_part_and_nothing_that_is_invisible(ram: CascadeMemory):
    text = await said(ram, "report_outcome", {**_REPORT, "reward": "good\u202e" * 1_000})
    assert text.startswith("reward must be a number from 0 to 1, not 'good")
    assert len(text) < 200
    assert "\u202e" not in text


async def test_a_question_without_an_action_names_the_tool_that_was_called(ram: CascadeMemory):
    episode = ram.acting(channel="mcp").recall("cool some mug")
    for arguments in ({}, {"action": " "}):
        text = await said(ram, "check_action", {"episode_id": episode.episode_id, **arguments})
        assert text.endswith(": check_action needs the action as text, or the tool and its arguments")
