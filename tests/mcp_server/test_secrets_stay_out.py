"""Whatever an MCP client says: no secret in it reaches a file, an answer that quotes it, or the server's log."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest
from invented_secrets import Invented
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_clients import SERVE, call
from planted_secrets import ALL, EVERY, found_below, found_in

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.verbs import Verbs


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--trust-agent-rewards",)], ids=["waiting", "trusted"])
async def test_no_tool_lets_one_in(options: tuple[str, ...], folder: Path, tmp_path: Path):
    answers: list[str] = []
    log = tmp_path / "log.txt"
    words = [*SERVE, str(folder), "--log-level", "debug", *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    with log.open("w") as errors:
        async with stdio_client(server, errlog=errors) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await _use(session, answers)
    assert found_in("\n".join(answers)) == []
    assert "DEBUG" in log.read_text()
    assert found_in(log.read_text()) == []
    assert found_below(folder) == {}


async def _use(session: ClientSession, answers: list[str]) -> None:
    for text in (ALL, EVERY[0].text, EVERY[-1].text):
        first = await call(session, "recall_cases", query=f"task {text}")
        answers.append(str(first))
        report = {"episode_id": first["episode_id"], "reward": 1, "solution": f"do {text}"}
        answers.append(str(await call(session, "report_outcome", **report)))
        answers.append(str(await call(session, "add_case", query=f"other {text}", solution=text)))
    for tool, arguments in (
        ("report_outcome", {"episode_id": EVERY[0].text, "reward": 1}),
        ("forget_cases", {"case_ids": [EVERY[0].text]}),
    ):
        with contextlib.suppress(RuntimeError):
            await call(session, tool, **arguments)
    answers.append(str(await call(session, "recall_cases", query=f"task {ALL}")))


@pytest.mark.parametrize("before", range(0, 60, 6))
def test_an_id_that_is_quoted_shows_no_half_of_a_secret(before: int):
    token = "gh" + "p_" + Invented(31).of(36)
    with CascadeMemory(embedder="hashing") as memory:
        verbs = Verbs(memory)
        for ask in (verbs.episode, verbs.check_action, lambda given: verbs.report_outcome(given, 1.0)):
            with pytest.raises(InvalidInput, match="there is no episode") as refused:
                ask(f"{'e ' * (before // 2)}{token}{' e' * 20}")
            said = str(refused.value)
            assert not any(token[at : at + 6] in said for at in range(4, len(token) - 6)), said
