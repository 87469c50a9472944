"""Sixty threads of a support chat through every door: the cases at the end are the tasks, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from cascade_memory import CascadeMemory as Engine
from cascade_memory import Episode
from cascade_memory.langchain import CascadeMemory
from cascade_memory.mcp_server.verbs import Verbs

Turn = tuple[str, str, str]  # what it is, what the user says, what the agent answers

_TASKS = {
    "en": ["Where is my {}?", "How do I return a broken {}?", "Cancel the order of my {}", "Which {} fits three people?"],
    "de": [
        "Wo bleibt mein {}?",
        "Wie schicke ich ein kaputtes {} zurück?",
        "Bestellung für {} stornieren",
        "Passt das {} zu drei Leuten?",
    ],
    "ja": [
        "{}の配送状況を教えてください",
        "壊れた{}の返品方法を教えてください",
        "{}の注文をキャンセルしたいです",
        "三人用の{}はありますか",
    ],
}
_THINGS = {
    "en": ["tent", "stove", "lamp", "chair", "cooler"],
    "de": ["Zelt", "Kocher", "Lampe", "Stuhl", "Boot"],
    "ja": ["テント", "コンロ", "ランプ", "椅子", "鍋"],
}
_SMALL = {
    "en": [("hello!", "Hi! How can I help you?"), ("thanks a lot!", "You are welcome."), ("great, bye", "Bye!")],
    "de": [("Guten Tag!", "Guten Tag! Wie kann ich Ihnen helfen?"), ("vielen Dank!", "Gern."), ("super, tschüss", "Bis bald!")],
    "ja": [("こんにちは", "こんにちは。"), ("ありがとうございます！", "どういたしまして。"), ("了解です", "はい。")],
}
_ASKED = {
    "en": [("number 4711", "I looked: done."), ("and is that free of charge?", "Yes.")],
    "de": [("Nummer 4711", "Ich habe nachgesehen: erledigt."), ("und kostet das etwas?", "Nein.")],
    "ja": [("4711です", "確認しました。"), ("それは無料ですか", "はい。")],
}
_WHICH = {"en": "Which order number?", "de": "Welche Nummer hat die Bestellung?", "ja": "注文番号は何ですか？"}


def threads() -> list[list[Turn]]:
    """Return sixty threads of one to six turns, twenty in each language, and no task twice."""
    made: list[list[Turn]] = []
    for language, forms in _TASKS.items():
        tasks = [form.format(thing) for form in forms for thing in _THINGS[language]]
        small, asked, which = _SMALL[language], _ASKED[language], _WHICH[language]
        for place, task in enumerate(tasks):
            shape = place % 5
            thread: list[Turn] = [] if shape in (0, 2, 3) else [("small", *small[0])]
            if shape in (1, 3):
                thread += [("task", task, which), ("follow", *asked[0]), ("small", *small[1]), ("follow", *asked[1])]
            else:
                thread += [("task", task, f"{task}: 42")]
            if shape >= 2:
                thread += [("small", *small[1])]
            if shape == 4:
                thread += [("task", f"{task} (2) 17", "OK."), ("small", *small[2]), ("small", *small[1])]
            made.append(thread)
    return made


THREADS = threads()
TASKS = sorted(said for thread in THREADS for kind, said, _ in thread if kind == "task")


def judge(episode: Episode) -> bool:
    return True


def cases(memory: Any) -> list[str]:
    return sorted(case.query for case in memory.cases.all())


def test_the_threads_are_what_they_should_be():
    assert len(THREADS) == 60
    assert {len(thread) for thread in THREADS} == {1, 2, 5, 6}
    assert len(TASKS) == len(set(TASKS)) == 72


def _langchain() -> CascadeMemory:
    return CascadeMemory(embedder="hashing", learn="inline", reward_fn=judge)


@pytest.mark.slow
def test_an_agent_with_a_checkpointer():
    memory = _langchain()
    for number, thread in enumerate(THREADS):
        script = GenericFakeChatModel(messages=iter([AIMessage(answer) for _, _, answer in thread]))
        agent = create_agent(script, [], middleware=[memory.middleware()], checkpointer=InMemorySaver())
        _talk(memory, agent, thread, str(number))
    assert cases(memory) == TASKS
    _check_solutions(memory)


@pytest.mark.slow
def test_a_graph_of_nodes():
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        cascade: dict[str, Any]

    memory = _langchain()
    for number, thread in enumerate(THREADS):
        script = GenericFakeChatModel(messages=iter([AIMessage(answer) for _, _, answer in thread]))

        def reply(state: State, script: GenericFakeChatModel = script) -> dict[str, Any]:
            return {"messages": [script.invoke(memory.inject(state["messages"], state.get("cascade")))]}

        graph = StateGraph(State)
        graph.add_node("recall", memory.recall_node())
        graph.add_node("reply", reply)
        graph.add_node("learn", memory.learn_node())
        graph.add_edge(START, "recall").add_edge("recall", "reply").add_edge("reply", "learn")
        _talk(memory, graph.compile(checkpointer=InMemorySaver()), thread, str(number))
    assert cases(memory) == TASKS
    _check_solutions(memory)


class Flaky(GenericFakeChatModel):
    """A model whose server fails at every word "FAIL"."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        answer = super()._generate(messages, stop, run_manager, **options)
        if answer.generations[0].text == "FAIL":
            raise ConnectionError
        return answer


@pytest.mark.parametrize("judged", [True, False])
def test_a_run_that_fails_while_the_user_goes_on_takes_nothing_back(judged: bool):
    memory = CascadeMemory(embedder="hashing", learn="inline", reward_fn=judge if judged else None)
    answers = iter([AIMessage(one) for one in ("Which order number?", "FAIL", "It arrives on Monday.")])
    agent = create_agent(Flaky(messages=answers), [], middleware=[memory.middleware()], checkpointer=InMemorySaver())

    def say(text: str) -> None:
        agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "t"}})

    say("Where is my tent?")
    with pytest.raises(ConnectionError):
        say("number 4711")
    assert memory.stats().open == (not judged)
    assert memory.stats().censored == 0
    say("number 4711, please")
    assert memory.stats().recalls == 1
    if judged:
        (case,) = memory.cases.all()
        assert "It arrives on Monday." in str(case.solution)
    else:
        (waiting,) = memory.episodes.pending()
        assert "It arrives on Monday." in str(waiting.solution)


def _talk(memory: CascadeMemory, agent: Any, thread: Sequence[Turn], number: str) -> None:
    for kind, said, _ in thread:
        before = memory.stats().recalls
        agent.invoke({"messages": [("user", said)]}, {"configurable": {"thread_id": number}})
        assert memory.stats().recalls - before == (kind == "task"), said


def _check_solutions(memory: Any) -> None:
    """The follow-ups belong to the task: its solution has what was asked back, and what came of it."""
    solutions = {case.query: str(case.solution) for case in memory.cases.all()}
    for thread in THREADS:
        follow_ups = [answer for kind, _, answer in thread if kind == "follow"]
        if follow_ups:
            (task,) = (said for kind, said, _ in thread if kind == "task")
            assert all(answer in solutions[task] for answer in follow_ups)


@pytest.mark.slow
def test_an_agent_of_llama_index_with_a_memory():
    pytest.importorskip("llama_index")
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.memory import InsertMethod, Memory
    from scripted_llm import ScriptedLLM

    from cascade_memory.llama_index import CascadeMemory as LlamaMemory

    memory = LlamaMemory(embedder="hashing", learn="inline", reward_fn=judge).install()

    async def talk() -> None:
        for thread in THREADS:
            history = Memory.from_defaults(memory_blocks=[memory.block()], insert_method=InsertMethod.USER)
            for kind, said, answer in thread:
                agent = FunctionAgent(tools=[], llm=ScriptedLLM(script=[answer]))
                before = memory.stats().recalls
                await agent.run(said, memory=history)
                assert memory.stats().recalls - before == (kind == "task"), said

    try:
        asyncio.run(talk())
        memory.engine.stats()
        memory.uninstall()
        assert cases(memory) == TASKS
        _check_solutions(memory)
    finally:
        memory.close()


@pytest.mark.slow
def test_an_agent_that_calls_the_tools_of_an_mcp_server(tmp_path: Path):
    """The agent asks for cases whenever the user says more than an answer, and reports when a task is over."""

    pytest.importorskip("mcp")
    from mcp_clients import call, stdio

    async def report(session: Any, episode: str, answers: Sequence[str]) -> None:
        if episode:
            await call(session, "report_outcome", episode_id=episode, reward=1.0, solution="\n".join(answers))

    async def talk() -> None:
        async with stdio(tmp_path / "m", "--embedder", "hashing", "--trust-agent-rewards") as session:
            for thread in THREADS:
                episode, answers = "", [""]
                for kind, said, answer in thread:
                    if kind == "follow":
                        answers.append(answer)
                        continue
                    found = await call(session, "recall_cases", query=said)
                    assert ("episode_id" in found) == (kind == "task"), said
                    if kind == "task":
                        await report(session, episode, answers)
                        episode, answers = found["episode_id"], [answer]
                await report(session, episode, answers)

    asyncio.run(talk())
    with Engine(tmp_path / "m", embedder="hashing") as memory:
        assert cases(memory) == TASKS
        assert memory.stats().recalls == len(TASKS)
        _check_solutions(memory)


def test_over_mcp_small_talk_is_no_case(ram: Engine):
    verbs = Verbs(ram, trusted=True)
    assert "no task" in verbs.recall_cases("vielen Dank!")["about"]
    with pytest.raises(ValueError, match="small talk"):
        verbs.add_case("vielen Dank!", "You are welcome.")
