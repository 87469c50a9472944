"""Four agents for the same desk, each with or without a memory. The lines that connect the memory suit your own agent too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from cascade_memory.langchain import CascadeMemory
from help_desk.world import ACTIONS, Desk

Agent = Callable[[str], None]
ROLE = (
    "You run a help desk. Every kind of trouble has a house procedure of two different actions, in order, on the device: "
    f"{', '.join(ACTIONS)}. Wrong actions soon lock a device."
)
PLAN = ROLE + ' Answer with one line: "ACTION DEVICE, then ACTION DEVICE".'
REACT = ROLE + (
    " Answer with one step at a time, in this form, and stop after Action Input:\nThought: ...\nAction: one of the actions\n"
    "Action Input: the device\nYou will be told the Observation. When you are done:\nFinal Answer: ..."
)


def tools_of(desk: Desk) -> list[BaseTool]:
    """Return the desk's actions as tools."""

    def tool(action: str) -> BaseTool:
        def act(item: str) -> str:
            return desk.act(action, item)

        return StructuredTool.from_function(act, name=action, description=f"{action.capitalize()} a device, such as printer-7.")

    return [tool(action) for action in ACTIONS]


def react_agent(model: BaseChatModel, desk: Desk, memory: CascadeMemory | None) -> Agent:
    """Return an agent made by ``create_agent``: the middleware alone connects it to the memory."""
    middleware = [] if memory is None else [memory.middleware()]
    agent = create_agent(model, tools_of(desk), system_prompt=ROLE, middleware=middleware)
    return lambda task: agent.invoke({"messages": [("user", task)]})


class State(MessagesState):
    """The graph's state. ``cascade`` carries the episode from node to node."""

    cascade: dict[str, Any]


def graph(model: BaseChatModel, desk: Desk, memory: CascadeMemory | None) -> Agent:
    """Return a hand-written LangGraph graph: the memory adds two nodes, and ``inject`` where the model is called."""
    tools = tools_of(desk)
    bound = model.bind_tools(tools)

    def think(state: State) -> dict[str, Any]:
        messages = state["messages"] if memory is None else memory.inject(state["messages"], state["cascade"])
        return {"messages": [bound.invoke([SystemMessage(ROLE), *messages])]}

    builder = StateGraph(State).add_node("think", think).add_node("tools", ToolNode(tools)).add_edge("tools", "think")
    if memory is None:
        builder.add_edge(START, "think").add_conditional_edges("think", tools_condition)
    else:
        builder.add_node("recall", memory.recall_node()).add_node("learn", memory.learn_node())
        builder.add_edge(START, "recall").add_edge("recall", "think").add_edge("learn", END)
        builder.add_conditional_edges("think", tools_condition, {"tools": "tools", END: "learn"})
    compiled = builder.compile()
    return lambda task: compiled.invoke({"messages": [("user", task)]})


def react_text(model: BaseChatModel, desk: Desk, memory: CascadeMemory | None) -> Agent:
    """Return an agent that writes its steps as text: ``memory.episode`` recalls, records the steps and rewards."""
    tools = {tool.name: tool for tool in tools_of(desk)}

    def loop(prompt: str) -> str:
        text = ""
        for _ in range(6):
            text = str(model.invoke([SystemMessage(REACT), HumanMessage(prompt)]).text)
            step = re.search(r"Action: *(\w+)\s*\nAction Input: *(\S+)", text)
            if step is None or step[1] not in tools:
                break
            prompt += f"\n{text}\nObservation: {tools[step[1]].invoke({'item': step[2]})}"
        return text.split("Final Answer:")[-1].strip()

    chain = RunnableLambda(loop)

    def agent(task: str) -> None:
        if memory is None:
            chain.invoke(task)
            return
        with memory.episode(task) as episode:
            chain.invoke(f"{episode.render()}\n{task}")

    return agent


def rag_chain(model: BaseChatModel, desk: Desk, memory: CascadeMemory | None) -> Agent:
    """Return a ``RunnableSequence``: the memory is its retriever, and the callback handler rewards the episode at the end."""

    def apply(plan: str) -> str:
        for action, item in re.findall(rf"\b({'|'.join(ACTIONS)})\s+(\w+-\d+)", plan):
            desk.act(action, item)
        return plan

    prompt = ChatPromptTemplate.from_messages([("system", PLAN), ("human", "{cases}\n\n{task}")])
    cases = RunnableLambda(lambda _: "")
    if memory is not None:
        cases = memory | (lambda found: "\n\n".join(document.page_content for document in found))
    chain = {"cases": cases, "task": RunnablePassthrough()} | prompt | model | StrOutputParser() | apply
    config: Any = {} if memory is None else {"callbacks": [memory.callback]}
    return lambda task: chain.invoke(task, config)


AGENTS: dict[str, Callable[[BaseChatModel, Desk, CascadeMemory | None], Agent]] = {
    "create_agent": react_agent,
    "graph": graph,
    "react-text": react_text,
    "rag": rag_chain,
}
