"""The prompt of the server: one case as text, several as earlier turns of the chat, unless the client says which."""

from __future__ import annotations

import json

import pytest
from mcp_doors import message, stdio_door

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.mcp_server import build


@pytest.mark.parametrize(
    ("k", "show", "roles"),
    [
        (1, {}, ["user"]),
        (2, {}, ["user", "assistant", "user", "assistant", "user"]),
        (1, {"show": "turns"}, ["user", "assistant", "user"]),
        (2, {"show": "text"}, ["user"]),
        (2, {"show": ""}, ["user", "assistant", "user", "assistant", "user"]),
    ],
)
async def test_how_the_cases_come(k: int, show: dict[str, str], roles: list[str]):
    with CascadeMemory(embedder="hashing", k=k, ranking=Ranking(abstain=False)) as memory:
        for what in ("mug", "pan"):
            memory.add(f"cool some {what}", "put it into the fridge")
        async with stdio_door(memory, build(memory)) as ask:
            asked = {"name": "solve_with_cases", "arguments": {"task": "cool some cup", **show}}
            said = json.loads(await ask(message(1, "prompts/get", json.dumps(asked))))["result"]["messages"]
    assert [one["role"] for one in said] == roles
    assert json.dumps(said).count("put it into the fridge") == k
    assert "Solve this task:" in said[-1]["content"]["text"]
