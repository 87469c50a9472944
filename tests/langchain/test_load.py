"""Many episodes at once, and what an episode costs beside the agent itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from scripted import ScriptedModel, call, model
from walks import walk_of

from cascade_memory import Episode
from cascade_memory.langchain import CascadeMemory

EPISODES = 200


@tool
def double(number: int) -> int:
    """Double."""
    return 2 * number


def script(messages: list[Any]) -> AIMessage:
    """Call the tool with the number of the task, then answer what came back; now and then fail."""
    number = int(next(message.text for message in reversed(messages) if message.type == "human").split()[-1])
    if messages[-1].type != "tool":
        return call("double", number=number)
    if number % 10 == 9:
        raise ValueError(f"no model for {number}")
    return AIMessage(f"{number} -> {messages[-1].text}")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["handler", *(pytest.param(way, marks=pytest.mark.long) for way in ("middleware", "both"))])
async def test_two_hundred_episodes_at_once_are_each_rewarded_once_with_their_own_reward(
    make: Callable[..., CascadeMemory], tmp_path: Path, way: str
):
    async def judge(episode: Episode) -> float | None:
        await asyncio.sleep(0.001)
        if episode.status == "error":
            return None
        number, doubled = episode.answer.split(" -> ")
        assert int(doubled) == 2 * int(number)
        return int(number) / EPISODES

    memory = make(tmp_path / "memory", reward_fn=judge, learn="background", deadline=30.0)  # machines are busy, too
    chat = ScriptedModel(script=script)
    if way == "handler":

        @tool
        async def work(number: int, config: RunnableConfig) -> str:
            """Recall, and double."""
            await memory.ainvoke(f"double {number}", config)
            return str(2 * number)

        work.name = "double"
        agent = create_agent(chat, [work])
    else:
        agent = create_agent(chat, [double], middleware=[memory.middleware()])
    config: Any = {} if way == "middleware" else {"callbacks": [memory.callback]}
    asked = [agent.ainvoke({"messages": [("user", f"double {i}")]}, config) for i in range(EPISODES)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    await asyncio.to_thread(memory.sync)

    failed = {i for i in range(EPISODES) if i % 10 == 9}
    assert {i for i, answer in enumerate(answers) if isinstance(answer, ValueError)} == failed
    settled = [episode for episode in _episodes(memory) if episode.status == "settled"]
    assert len(settled) == EPISODES - len(failed)
    for episode in settled:
        number = int(episode.query.split()[-1])
        assert episode.reward == number / EPISODES
        assert episode.answer == f"{number} -> {2 * number}"
    assert memory.stats().rewards == len(settled)
    assert memory.stats().episodes == EPISODES
    assert memory.health().failures == {}
    assert memory.callback.open_runs == 0


def _episodes(memory: CascadeMemory) -> list[Episode]:
    ledger = engine_of(memory).parts.ledger
    return ledger.episodes.listed(ledger.namespace("default", create=False), status=None)


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "most"), [(1, 270), (8, 930), (16, 1_690)])
def test_middleware_and_handler_do_as_much_in_each_step_of_an_agent(always: CascadeMemory, steps: int, most: int):
    """A bound in calls does not depend on what else the machine does; ``langchain_overhead.py`` measures milliseconds."""
    calls: list[int] = []
    for number in range(6):
        chat = model(*[call("double", number=2)] * steps, "It is 4.")
        agent = create_agent(chat, [double], middleware=[always.middleware()])
        asked: Any = {"messages": [("user", f"double 2, for the {number}th time")]}
        files = walk_of(partial(agent.invoke, asked, {"callbacks": [always.callback]})).files
        calls.append(sum(entered for file, entered in files.items() if file.startswith(("langchain/", "runs/"))))
    assert 0 < min(calls[1:]) <= most, calls  # in the first episode there is no case


def test_importing_without_the_extra_says_what_to_install(tmp_path: Path):
    program = """
        import sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("langchain", "langchain_core", "langgraph"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Missing())
        import cascade_memory.langchain
        from cascade_memory.errors import MissingExtra
        for name in cascade_memory.langchain.__all__:
            try:
                getattr(cascade_memory.langchain, name)
            except MissingExtra as error:
                assert 'pip install "cascade-memory[langchain]"' in str(error), error
            else:
                raise SystemExit(f"{name} was imported")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env={**os.environ}, timeout=60
    )
    assert done.returncode == 0, done.stderr
