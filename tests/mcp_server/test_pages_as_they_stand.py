"""The very JSON of the pages, read by a client that starts the server as it says, for three tasks of one kind."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp_clients import call, started
from pages import PROJECT, blocks

from cascade_memory.encoders import minilm

_FOLDER = "/home/me/memory"  # on the pages
_SOLUTIONS = {
    "heat some egg and put it on the table": "take egg, microwave it, go to the table, put it down",
    "heat some mug and put it in the cabinet": "take mug, microwave it, open the cabinet, put it in",
    "heat a mug and put it in the cabinet": "",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not minilm.is_installed(), reason="needs the extra 'local'"),
    pytest.mark.parametrize("page", ["docs/mcp.md", "docs/how-to/serve.md"]),
]


def _server(page: str, folder: Path, *more: str) -> AbstractAsyncContextManager[ClientSession]:
    """Start the server that the first JSON of a page says, in another folder."""
    found = next(block for block in blocks(PROJECT / page) if block.language == "json" and "mcpServers" in block.code)
    (server,) = json.loads(found.code)["mcpServers"].values()
    assert server["args"][-1] == _FOLDER
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = shutil.which(server["command"], path=paths)
    assert command is not None
    return started(command, [*server["args"][:-1], str(folder), *more], server.get("env"))


async def _three_tasks(session: ClientSession) -> list[dict[str, Any]]:
    """Work on the tasks as an agent does that follows the descriptions of the tools; return what was recalled for each."""
    found = []
    for task, solution in _SOLUTIONS.items():
        found.append(await call(session, "recall_cases", query=task))
        await call(session, "report_outcome", episode_id=found[-1]["episode_id"], reward=1.0, solution=solution)
    return found


async def test_as_it_stands_the_answer_names_what_waits_and_the_command(page: str, tmp_path: Path):
    async with _server(page, tmp_path / "memory") as session:
        *_, last = await _three_tasks(session)
    assert last["cases"] == []
    assert "2 reports" in last["about"]
    assert "cascade-memory review pending" in last["about"]


async def test_with_a_trusted_agent_the_third_task_is_shown_what_solved_the_second(page: str, tmp_path: Path):
    async with _server(page, tmp_path / "memory", "--trust-agent-rewards") as session:
        first, second, third = await _three_tasks(session)
    first_solution, second_solution, _ = _SOLUTIONS.values()
    assert first["cases"] == []
    assert [case["solution"] for case in second["cases"]] == [first_solution]
    assert second_solution in [case["solution"] for case in third["cases"]]
