"""A model that searches: what it calls, what it is told, when it must answer, and what becomes a case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cascade_memory.domain.case import with_tool_calls
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.model import AnyChatModel, Asking
from cascade_memory.evaluation.model.chat import Message, Reply, ToolCall
from cascade_memory.evaluation.model.responses import reply_from
from cascade_memory.evaluation.search.agent import MOST_CALLS, SearchingSolver
from cascade_memory.evaluation.search.local import LocalSearch
from cascade_memory.evaluation.search.questions import Passage
from cascade_memory.evaluation.search.stage import by_labels
from cascade_memory.evaluation.search.tool import PassageTool, schema
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.tasks.task import Item

ITEM = Item("Where was the director of Jaws born?", ["Cincinnati"])
PASSAGES = [Passage("Jaws", "A film directed by Steven Spielberg."), Passage("Steven Spielberg", "He was born in Cincinnati.")]
PROMPTS = Path(__file__).parents[1] / "fixtures" / "prompts" / "2wiki.txt"


class Scripted:
    """A chat model whose replies are listed, or a function of the number of the request."""

    name: ClassVar[str] = "scripted"
    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, *replies: Reply, then: Callable[[int], Reply] | None = None) -> None:
        self.replies, self.then = list(replies), then
        self.asked: list[list[Message]] = []

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> Scripted:
        return self

    def complete(self, messages: Sequence[Message], note: object) -> Reply:
        self.asked.append(list(messages))
        return self.then(len(self.asked)) if self.then else self.replies[len(self.asked) - 1]


def call(query: Any, name: str = "search", id_: str = "c1") -> ToolCall:
    return ToolCall(id_, name, query if isinstance(query, str) and query[:1] in "{[" else json.dumps({"query": query}))


def attempt(chat: Scripted, cases: Sequence[RecalledCase] = ()) -> Attempt:
    solver = SearchingSolver([ITEM], Asking(chat), PassageTool(LocalSearch(PASSAGES, "bm25")), by_labels)
    return solver.attempt(0, cases)


def solved() -> Trajectory:
    chat = Scripted(
        Reply("First the film.", calls=(call("Jaws"),)), Reply("", calls=(call("Steven Spielberg"),)), Reply("Cincinnati")
    )
    answer = attempt(chat).answer
    assert isinstance(answer, Trajectory)
    return answer


def case() -> RecalledCase:
    solution, numbers = solved(), dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    return RecalledCase(id="c", query=with_tool_calls(ITEM.query, solution), solution=solution, metadata={}, **numbers)


def test_it_searches_and_answers_and_the_trajectory_becomes_the_case():
    chat = Scripted(
        Reply("First the film.", calls=(call("Jaws"),)), Reply("", calls=(call("Steven Spielberg"),)), Reply(" Cincinnati.\n")
    )
    done = attempt(chat)
    assert (done.success, done.steps) == (True, 2)
    assert isinstance(done.answer, Trajectory)
    first, second = done.answer.steps
    assert (first.thought, first.action) == ("First the film.", 'search({"query": "Jaws"})')
    assert "directed by Steven Spielberg" in first.observation
    assert (second.thought, done.answer.answer) == ("", "Cincinnati.")
    last = chat.asked[-1]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert last[4]["content"] == ""  # some servers refuse null
    assert last[5]["tool_call_id"] == last[4]["tool_calls"][0]["id"] == "c1"
    assert case().query.endswith('\nTool calls: search({"query": "Jaws"}); search({"query": "Steven Spielberg"})')


def test_an_answer_without_a_search_is_judged_but_makes_no_case():
    assert attempt(Scripted(Reply("Cincinnati"))) == Attempt(True, None, steps=0)
    assert attempt(Scripted(Reply(""))) == Attempt(False, None, steps=0)


def test_after_five_searches_one_answer_is_left():
    chat = Scripted(then=lambda number: Reply("", calls=(call(f"Jaws {number}"),)) if number <= 5 else Reply("Cincinnati"))
    assert (attempt(chat).success, len(chat.asked)) == (True, 6)
    endless = Scripted(then=lambda number: Reply("Cincinnati", calls=(call("Jaws"),)))
    done = attempt(endless)
    assert (done.success, done.steps, len(endless.asked)) == (False, MOST_CALLS, MOST_CALLS + 1)
    assert isinstance(done.answer, Trajectory)
    assert done.answer.answer == ""


def test_calls_in_one_reply_are_made_in_turn_and_those_past_the_limit_are_refused():
    many = tuple(call("Jaws", id_=f"c{number}") for number in range(7))
    chat = Scripted(Reply("", calls=many), Reply("Cincinnati"))
    assert attempt(chat).steps == 5
    results = chat.asked[1][3:]
    assert [message["tool_call_id"] for message in results] == [f"c{number}" for number in range(7)]
    assert ["not made" in message["content"] for message in results] == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        call("Jaws", name="browse"),
        call("{}"),
        call('{"query": 7}'),
        call('{"query": ["Jaws"]}'),
        call('{"query": "  "}'),
        call("[1]"),
        ToolCall("c1", "search", "Jaws"),
        ToolCall("c1", "search", ""),
        ToolCall("c1", "search", "[" * 9000),
        ToolCall("c1", "se\x00arch\u202e", '{"query": "Jaws"}'),
    ],
)
def test_a_wrong_call_is_answered_and_counts_but_finds_no_case(wrong):
    chat = Scripted(Reply("", calls=(wrong,)), Reply("", calls=(call("Jaws"),)), Reply("Cincinnati"))
    done = attempt(chat)
    assert (done.success, done.steps) == (True, 2)
    assert isinstance(done.answer, Trajectory)
    assert "The call is wrong: the only tool is search" in chat.asked[1][3]["content"]
    assert json.loads(chat.asked[1][2]["tool_calls"][0]["function"]["arguments"]) is not None
    assert with_tool_calls("q", done.answer) == 'q\nTool calls: search({"query": "Jaws"})'


def test_control_characters_and_endless_texts_can_still_be_stored():
    query = "Jaws\x00\x1b[31m " + "x" * 100_000
    chat = Scripted(Reply("\ud800 thought\x00", calls=(call(query),)), Reply("Cincinnati " * 10_000))
    done = attempt(chat).answer
    assert isinstance(done, Trajectory)
    assert len(done.as_text()) < 20_000


def shown(cases: Sequence[RecalledCase]) -> str:
    chat = Scripted(Reply("Cincinnati"))
    attempt(chat, cases)
    return "\n".join(f"[{message['role']}]\n{message['content']}\n" for message in chat.asked[0])


def test_the_prompts_are_those_that_a_person_has_read():
    tool = json.dumps(schema(PassageTool(LocalSearch(PASSAGES, "bm25"))), indent=2)
    parts = [
        ("2wiki, without a case", shown([])), ("2wiki, with a case", shown([case()])), ("2wiki, the tool", f"{tool}\n"),
    ]  # fmt: skip
    text = "\n".join(f"{'=' * 20} {title}\n\n{part}" for title, part in parts)
    assert text == PROMPTS.read_text(encoding="utf-8"), (
        f"if the prompts were changed on purpose, write this to {PROMPTS}:\n{text}"
    )


def message(**about: Any) -> bytes:
    return json.dumps({"choices": [{"message": about}]}).encode()


def test_tool_calls_are_read_from_responses():
    called = {"id": "a", "function": {"name": "search", "arguments": '{"query": "x"}'}}
    assert reply_from(200, message(content=None, tool_calls=[called])).calls == (ToolCall("a", "search", '{"query": "x"}'),)
    odd = [None, 7, {}, {"function": "f"}, {"function": {"name": ""}}, {"function": {"name": "f", "arguments": {"q": 1}}}]
    assert reply_from(200, message(content="so", tool_calls=odd)).calls == (ToolCall("call_5", "f", '{"q": 1}'),)
    for nothing in (None, "calls", {"a": 1}, []):
        assert reply_from(200, message(content="so", tool_calls=nothing)) == Reply("so")
    assert len(reply_from(200, message(content=None, tool_calls=[called] * 1000)).calls) == 32


def test_a_langchain_model_can_call_tools_if_it_takes_them():
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Calls(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            assert tools[0]["function"]["name"] == "search"
            return self

    wish = {"name": "search", "args": {"query": "Jaws"}, "id": "c1", "type": "tool_call"}
    replies = [AIMessage("", tool_calls=[wish]), AIMessage("Cincinnati")]
    tool = PassageTool(LocalSearch(PASSAGES, "bm25"))
    chat = AnyChatModel(Calls(messages=iter(replies)), "fake").with_tools([schema(tool)])
    done = SearchingSolver([ITEM], Asking(chat), tool, by_labels).attempt(0, ())
    assert (done.success, done.steps, chat.name) == (True, 1, "fake")
    with pytest.raises(InvalidInput, match="cannot call tools"):
        AnyChatModel(FakeListChatModel(responses=["x"]), "plain").with_tools([schema(tool)])


def test_a_request_that_was_answered_is_not_sent_again(tmp_path: Path):
    def solve(chat: Scripted) -> Attempt:
        asking = Asking(chat, log=tmp_path / "log.jsonl")
        return SearchingSolver([ITEM], asking, PassageTool(LocalSearch(PASSAGES, "bm25")), by_labels).attempt(0, ())

    class Noting(Scripted):
        def complete(self, messages: Sequence[Message], note: Any) -> Reply:
            from cascade_memory.evaluation.model.chat import Try

            reply = super().complete(messages, note)
            note(Try(number=1, seconds=0.1, reply=reply))
            return reply

    first = solve(Noting(Reply("", calls=(call("Jaws"),)), Reply("Cincinnati")))
    silent = Noting()
    assert solve(silent) == first
    assert silent.asked == []
