"""Whatever a LangChain agent says, does and sees: no secret in it reaches a file or a log line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from planted_secrets import ALL, EVERY, found_below, nothing_is_said
from scripted import call, model

from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]
LONG = f"{'line of a long page ' * 390}{ALL}{'another line ' * 400}"  # it is cut, and the cut goes through secrets


@pytest.fixture(autouse=True)
def said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with nothing_is_said(caplog):
        yield


@tool
def read_page(url: str) -> str:
    """Read a page."""
    return LONG


@tool
def log_in(password: str) -> str:
    """Log in."""
    raise ValueError(f"refused: {ALL}")


def script(messages: list[BaseMessage]) -> AIMessage:
    steps = sum(isinstance(message, AIMessage) for message in messages)
    if steps == 0:
        return call("read_page", f"I think of {ALL}", url=f"https://example.org/?{EVERY[0].text}")
    if steps == 1:
        return call("read_page", LONG, url=LONG)
    return AIMessage(f"It is {ALL}")


def test_the_middleware_stores_and_logs_none(make: Make, tmp_path: Path):
    memory = make(tmp_path / "memory", reward_fn=lambda _: 1.0)
    agent = create_agent(model(script), [read_page], middleware=[memory.middleware()])
    asked = {"messages": [("user", f"read {ALL}")]}
    config = {"metadata": {"about": EVERY[3].text}}
    agent.invoke(asked, config)  # type: ignore[arg-type]
    agent.invoke(asked)  # type: ignore[arg-type]
    memory.sync()
    assert memory.stats().cases > 0
    assert found_below(tmp_path) == {}


def test_an_agent_that_fails_leaves_none_behind(make: Make, tmp_path: Path):
    def judge(episode: object) -> float:
        raise RuntimeError(f"cannot judge {ALL}")

    memory = make(tmp_path / "memory", reward_fn=judge)
    refusing = create_agent(model(lambda _: call("log_in", password=EVERY[1].text)), [log_in], middleware=[memory.middleware()])
    with pytest.raises(ValueError, match="refused"):
        refusing.invoke({"messages": [("user", f"log in with {ALL}")]})
    agent = create_agent(model(script), [read_page], middleware=[memory.middleware()])
    agent.invoke({"messages": [("user", f"read {ALL}")]})
    memory.sync()
    assert memory.stats().episodes == 2
    assert found_below(tmp_path) == {}


def test_the_retriever_and_the_handler_store_none(make: Make, tmp_path: Path):
    memory = make(tmp_path / "memory", reward_fn=lambda _: 1.0)
    chain = memory | RunnableLambda(lambda documents: f"answer {ALL}")
    chain.invoke(f"question {ALL}", {"callbacks": [memory.callback]})
    memory.sync()
    assert memory.stats().recalls > 0
    assert found_below(tmp_path) == {}


def test_an_agent_in_the_users_own_block_does_not_recall_again_because_of_a_placeholder(make: Make):
    memory = make()
    memory.add("push", "use the script")
    agent = create_agent(model(lambda _: AIMessage("done")), [], middleware=[memory.middleware()])
    task = f"push with {EVERY[2].text}"
    with memory.episode(task) as episode:
        agent.invoke({"messages": [("user", task)]})
        episode.reward(1.0)
    memory.sync()
    assert memory.stats().recalls == 1
