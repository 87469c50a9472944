"""Whatever a LlamaIndex agent says, does and sees: no secret in it reaches a file or a log line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_agents import function_agent, with_block
from planted_secrets import ALL, EVERY, found_below, nothing_is_said


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with nothing_is_said(caplog):
        yield


def read_page(url: str) -> str:
    """Read a page."""
    return f"{'line of a long page ' * 390}{ALL}{'another line ' * 400}"


async def test_an_agents_run_stores_and_logs_none(make, tmp_path: Path):
    memory = make(tmp_path / "memory", reward_fn=lambda _: 1.0)
    memory.install()
    agent = function_agent(("read_page", {"url": f"https://example.org/?{EVERY[0].text}"}), f"It is {ALL}", tools=[read_page])
    await agent.run(f"read {ALL}", memory=with_block(memory))
    memory.sync()
    assert memory.stats().cases == 1
    assert found_below(tmp_path) == {}


async def test_a_judge_that_raises_says_nothing(make, tmp_path: Path):
    def judge(episode: object) -> float:
        raise RuntimeError(f"cannot judge {ALL}")

    memory = make(tmp_path / "memory", reward_fn=judge)
    memory.install()
    await function_agent(f"It is {ALL}").run(f"read {ALL}", memory=with_block(memory))
    memory.sync()
    assert memory.health().failures
    assert found_below(tmp_path) == {}
