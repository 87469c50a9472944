"""Hand-written graphs, ReAct text agents and RAG chains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from scripted import model
from typing_extensions import TypedDict

from cascade_memory import Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


class State(MessagesState):
    cascade: dict[str, Any]


def graph(memory: CascadeMemory, act: Any, checkpointer: Any = None, **learn: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("recall", memory.recall_node()).add_node("act", act).add_node("learn", memory.learn_node(**learn))
    builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
    return builder.compile(checkpointer=checkpointer)


def rewards(memory: CascadeMemory) -> list[float]:
    memory.sync()
    return [value for value, _ in memory.engine.episodes.rewards()]


def ask(text: str = "what is 2 + 3?") -> dict[str, Any]:
    return {"messages": [("user", text)]}


@pytest.fixture
def judged(make: Make) -> CascadeMemory:
    return make(reward_fn=lambda episode: None if episode.status == "error" else "5" in episode.answer)


async def test_a_graph_recalls_injects_and_learns(judged: CascadeMemory):
    script = model("It is 5.")

    def act(state: State) -> dict[str, Any]:
        return {"messages": [script.invoke(judged.inject(state["messages"], state["cascade"]))]}

    compiled = graph(judged, act)
    compiled.invoke(ask())
    out = await compiled.ainvoke(ask("what is 2 + 3, please?"))
    assert rewards(judged) == [1.0, 1.0]
    assert "It is 5." in script.seen[1][0].text, "the first solution was shown"
    assert out["messages"][0].text == "what is 2 + 3, please?", "and never entered the history"


def test_a_graph_may_score_its_own_state(memory: CascadeMemory):
    def act(_: State) -> dict[str, Any]:
        return {"messages": [AIMessage("It is 5.")]}

    graph(memory, act, reward=lambda state: state["messages"][-1].text == "It is 5.").invoke(ask())
    graph(memory, act, reward=lambda _: None).invoke(ask("later"))
    assert rewards(memory) == [1.0]
    assert [episode.answer for episode in memory.episodes.pending()] == ["It is 5."]

    def broken(_: Any) -> float:
        raise KeyError("gold")

    with pytest.raises(KeyError, match="gold"):
        graph(memory, act, reward=broken).invoke(ask("x"))


def test_the_state_may_be_of_any_kind_and_have_other_keys(judged: CascadeMemory):
    class Plain(TypedDict):
        question: str
        answer: str
        memory: dict[str, Any]

    @dataclass
    class Classy:
        question: str = ""
        answer: str = ""
        memory: dict[str, Any] = field(default_factory=dict)

    for schema in (Plain, Classy):
        builder = StateGraph(schema)
        builder.add_node("recall", judged.recall_node(query="question", key="memory"))
        builder.add_node("act", lambda _: {"answer": "It is 5."})
        builder.add_node("learn", judged.learn_node(solution="answer", key="memory"))
        builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
        builder.compile().invoke({"question": "what is 2 + 3?"})
    assert rewards(judged) == [1.0, 1.0]
    assert judged.stats().cases == 1


def test_a_graph_wired_wrongly_says_so(judged: CascadeMemory):
    builder = StateGraph(State).add_node("recall", judged.recall_node(query="question")).add_edge(START, "recall")
    with pytest.raises(InvalidInput, match="question"):
        builder.compile().invoke(ask())


def test_a_graph_that_loses_its_episode_or_its_answer_is_counted(memory: CascadeMemory):
    builder = StateGraph(MessagesState).add_node("recall", memory.recall_node()).add_node("learn", memory.learn_node())
    builder.add_edge(START, "recall").add_edge("recall", "learn").add_edge("learn", END)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions of LangGraph warn of the unknown key
        builder.compile().invoke(ask())
    assert "declare `cascade: dict`" in str(memory.health().last_error)
    graph(memory, lambda _: {"messages": [AIMessage("5")]}, solution="answr").invoke(ask())
    assert "answr" in str(memory.health().last_error)


@pytest.mark.parametrize("handler", [True, False])
def test_a_graph_that_waits_goes_on_in_the_same_episode(judged: CascadeMemory, tmp_path: Path, handler: bool):
    def act(_: State) -> dict[str, Any]:
        return {"messages": [AIMessage(f"It is {interrupt('what is it?')}.")]}

    config: Any = {"configurable": {"thread_id": "t"}, "callbacks": [judged.callback] if handler else []}
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite3")) as saver:
        compiled = graph(judged, act, saver)
        compiled.invoke(ask(), config)
        assert rewards(judged) == []
        compiled.invoke(Command(resume="5"), config)
        assert rewards(judged) == [1.0]
        compiled.invoke(ask("What is 3 + 3?"), config)
        compiled.invoke(ask("Multiply 7 by 8."), config)
        assert judged.stats().censored == 1
        compiled.invoke(Command(resume="5"), config)
        assert rewards(judged) == [1.0, 1.0]
        replay = next(state for state in compiled.get_state_history(config) if state.next == ("learn",))
        compiled.invoke(None, {**config, **replay.config})
    assert rewards(judged) == [1.0, 1.0]
    assert judged.health().ok


def test_a_scored_graph_played_again_keeps_its_first_reward(memory: CascadeMemory, tmp_path: Path):
    scores = iter([1.0, 0.0])
    config: Any = {"configurable": {"thread_id": "t"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite3")) as saver:
        compiled = graph(memory, lambda _: {"messages": [AIMessage("5")]}, saver, reward=lambda _: next(scores))
        compiled.invoke(ask(), config)
        replay = next(state for state in compiled.get_state_history(config) if state.next == ("learn",))
        compiled.invoke(None, {**config, **replay.config})
    assert rewards(memory) == [1.0]
    assert memory.health().ok


def test_a_graph_whose_node_raises_is_censored_by_the_handler(judged: CascadeMemory):
    def act(_: State) -> dict[str, Any]:
        raise RuntimeError("broken node")

    with pytest.raises(RuntimeError, match="broken node"):
        graph(judged, act).invoke(ask(), {"callbacks": [judged.callback]})
    assert judged.stats().censored == 1
    assert rewards(judged) == []


def test_a_failing_memory_does_not_stop_a_graph(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(judged.engine, "recall", broken)
    out = graph(judged, lambda _: {"messages": [AIMessage("5")]}).invoke(ask())
    assert out["messages"][-1].text == "5"
    assert judged.health().failures == {"recall": 1}


# -- ReAct as text -------------------------------------------------------------------------------------------------------


def test_a_react_agent_that_writes_its_steps_as_text_keeps_them(judged: CascadeMemory):
    turns = [
        AIMessage("Thought: I need a sum.\nAction: add\nAction Input: 2, 3"),
        HumanMessage("Observation: 5"),
        AIMessage("Thought: I know it.\nFinal Answer: It is 5."),
    ]
    with judged.episode("what is 2 + 3?"):
        RunnableLambda(lambda _: {"messages": [HumanMessage("what is 2 + 3?"), *turns]}).invoke("q")
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    assert isinstance(case.solution, Trajectory)
    assert [(step.thought, step.action, step.observation) for step in case.solution.steps] == [
        ("I need a sum.", "add: 2, 3", "5")
    ]
    assert case.solution.answer == "It is 5."


def test_a_react_loop_over_tools_is_watched_thoughts_and_all(judged: CascadeMemory):
    @tool
    def add(numbers: str) -> str:
        """Add."""
        return str(sum(int(one) for one in numbers.split(",")))

    llm = FakeListLLM(responses=["Thought: I need a sum.\nAction: add\nAction Input: 2, 3", "Final Answer: It is 5."])

    def loop(question: str) -> str:
        judged.invoke(question)
        prompt = question
        while "Final Answer:" not in (text := llm.invoke(prompt)):
            prompt += f"{text}\nObservation: {add.invoke(text.split('Action Input: ')[1])}\n"
        return text.split("Final Answer: ")[1]

    RunnableLambda(loop).invoke("what is 2 + 3?", {"callbacks": [judged.callback]})
    (case,) = judged.engine.recall("what is 2 + 3?").cases
    (step,) = case.solution.steps
    assert (step.thought, step.tool, step.arguments, step.observation) == ("I need a sum.", "add", {"input": "2, 3"}, "5")
    assert case.solution.answer == "It is 5."


# -- chains --------------------------------------------------------------------------------------------------------------


async def test_a_rag_chain_is_one_episode_per_call(judged: CascadeMemory):
    judged.add("what is 2 + 3?", "five")
    prompt = ChatPromptTemplate.from_template("{cases}\n\nQuestion: {question}")
    script = model("It is 5.")
    cases = judged | (lambda found: "\n\n".join(one.page_content for one in found))
    chain = {"cases": cases, "question": RunnablePassthrough()} | prompt | script | StrOutputParser()
    config: Any = {"callbacks": [judged.callback]}
    assert chain.invoke("what is 2 + 3?", config) == "It is 5."
    assert await chain.ainvoke("what is 2 + 3, then?", config) == "It is 5."
    assert "".join(chain.stream("what is 2 + 3 again?", config)) == "It is 5."
    assert rewards(judged) == [1.0] * 3
    assert "five" in script.seen[0][0].text
    assert judged.engine.cases.get(judged.engine.cases.search("what is 2 + 3 again?").cases[0].id).solution == "It is 5."


@pytest.mark.parametrize("key", ["answer", "output", "result", "response", "text"])
def test_the_answer_of_a_chain_is_found_under_its_usual_names(judged: CascadeMemory, key: str):
    def chain(question: str) -> dict[str, Any]:
        judged.invoke(question)
        return {"question": question, key: AIMessage("It is 5.")}

    RunnableLambda(chain).invoke("what is 2 + 3?", {"callbacks": [judged.callback]})
    assert rewards(judged) == [1.0]


# -- nothing is silent ---------------------------------------------------------------------------------------------------


def test_a_recall_node_that_finds_no_task_says_once_what_the_state_has(memory: CascadeMemory):
    class Other(TypedDict, total=False):
        question: str
        answer: str
        cascade: dict[str, Any]

    app = StateGraph(Other).add_node("recall", memory.recall_node()).add_edge(START, "recall").compile()
    with pytest.warns(UserWarning, match=r"recall_node found no task.*the state has .*question.*recall_node\(query=KEY\)"):
        assert app.invoke({"question": "what is 2 + 3?"})["cascade"] == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.invoke({"question": "what is 2 + 3?"})
    assert memory.health().ok
    named = StateGraph(Other).add_node("recall", memory.recall_node(query="question")).add_edge(START, "recall").compile()
    with pytest.warns(UserWarning, match="found no task under 'question'"):
        named.invoke({"question": " "})


def test_a_learn_node_that_finds_no_solution_says_once_what_the_state_has(judged: CascadeMemory):
    class Other(TypedDict, total=False):
        question: str
        result: str
        cascade: dict[str, Any]

    def built(**learn: Any) -> Any:
        builder = StateGraph(Other).add_node("recall", judged.recall_node(query="question"))
        builder.add_node("act", lambda _: {"result": "It is 5."}).add_node("learn", judged.learn_node(**learn))
        builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
        return builder.compile()

    for app in (built(), built(reward=lambda state: 1.0)):
        with pytest.warns(
            UserWarning, match=r"learn_node found no solution.*the state has .*result.*learn_node\(solution=KEY\)"
        ):
            app.invoke({"question": "what is 2 + 3?"})
    assert judged.stats().cases == 0
    assert judged.stats().unkept["solution"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built(solution="result").invoke({"question": "what is 2 + 3?"})
    assert judged.stats().cases == 1


def test_the_door_s_warning_of_rewards_that_keep_nothing_comes_once(make: Make):
    memory = make(reward_fn=lambda episode: 0.9)
    app = graph(memory, lambda _: {"messages": [AIMessage("It is 5.")]})
    with pytest.warns(UserWarning, match="below retain_at=1"):
        app.invoke(ask())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.invoke(ask())
    assert memory.stats().unkept["below"] == 2
