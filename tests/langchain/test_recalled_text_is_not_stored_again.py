"""What came out of the memory does not go into it again, whichever way it took through the agent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from adding_agents import ask, paid
from inside import engine_of
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import tool
from scripted import call, model

from cascade_memory import Ranking
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


@pytest.fixture
def seeded(make: Make) -> CascadeMemory:
    memory = make(reward_fn=lambda _: 1.0, ranking=Ranking(abstain=False))
    memory.add("heat", "SECRETCASE")
    return memory


def chain_of_documents(memory: CascadeMemory) -> None:
    parallel = RunnableParallel(docs=memory, question=RunnableLambda(str)) | (lambda x: {**x, "reply": "42"})
    parallel.invoke("heat", {"callbacks": [memory.callback]})


def chain_that_returns_documents(memory: CascadeMemory) -> None:
    (RunnableLambda(str.strip) | memory).invoke("heat", {"callbacks": [memory.callback]})


def parallel_agents(memory: CascadeMemory) -> None:
    agent = create_agent(model(call("recall_cases", query="heat"), "done"), [memory.tool()])
    RunnableParallel(a=agent, b=agent).invoke(ask("heat"), {"callbacks": [memory.callback]})


def react_text(memory: CascadeMemory) -> None:
    def run(task: str, config: Any) -> dict[str, Any]:
        shown = memory.tool().invoke({"query": task}, config)
        said = [AIMessage("Thought: ask.\nAction: recall_cases\nAction Input: heat"), HumanMessage(f"Observation: {shown}")]
        return {"messages": [HumanMessage(task), *said, AIMessage("Final Answer: done")]}

    RunnableLambda(run).invoke("heat", {"callbacks": [memory.callback]})


def tool_node_of_ones_own(memory: CascadeMemory) -> None:
    def run(task: str) -> dict[str, Any]:
        asked = call("lookup", q=task)
        found = "\n".join(one.page_content for one in memory.invoke(task))
        told = ToolMessage(found, tool_call_id=asked.tool_calls[0]["id"])
        return {"messages": [HumanMessage(task), asked, told, AIMessage("done")]}

    RunnableLambda(run).invoke("heat", {"callbacks": [memory.callback]})


def tool_with_a_thread(memory: CascadeMemory) -> None:
    @tool
    def lookup(q: str) -> str:
        """Look up."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(memory.invoke, q).result()[0].page_content

    create_agent(model(call("lookup", q="heat"), "done"), [lookup], middleware=[memory.middleware()]).invoke(ask("heat"))


def tool_that_asks_the_engine(memory: CascadeMemory) -> None:
    @tool
    def lookup(q: str) -> str:
        """Look up."""
        return memory.engine.cases.search(q).render()

    create_agent(model(call("lookup", q="heat"), "done"), [lookup], middleware=[memory.middleware()]).invoke(ask("heat"))


def second_handle(memory: CascadeMemory) -> None:
    other = CascadeMemory(engine=memory.engine)
    agent = create_agent(model(call("recall_cases", query="heat"), "done"), [other.tool()], middleware=[memory.middleware()])
    agent.invoke(ask("heat"))
    assert memory.episodes.pending() == [], "both handles know the one episode"


@pytest.mark.parametrize(
    "way",
    [
        chain_of_documents,
        chain_that_returns_documents,
        parallel_agents,
        react_text,
        tool_node_of_ones_own,
        tool_with_a_thread,
        tool_that_asks_the_engine,
        second_handle,
    ],
)
def test_what_came_out_of_the_memory_does_not_go_in_again(seeded: CascadeMemory, way: Callable[[CascadeMemory], None]):
    way(seeded)
    seeded.sync()
    assert 1.0 in paid(seeded)
    ledger = engine_of(seeded).parts.ledger
    settled = ledger.episodes.listed(ledger.namespace("default", create=False), status="settled")
    assert settled
    assert all("SECRETCASE" not in str(episode.solution) for episode in settled)
