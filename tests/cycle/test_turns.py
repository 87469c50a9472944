"""Cases as earlier turns of a chat: whose word may be a turn, in which order, and what becomes of tool calls and long texts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.cycle.chat_turns import turns, way_to_show
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.errors import InvalidInput

NUMBERS = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
SEARCHED = Trajectory(
    [
        Step(tool="search", arguments={"q": "mug"}, observation="It is on the shelf.", thought="Where is it?"),
        Step(tool="move", arguments={"what": "mug", "to": "fridge"}, observation=""),
    ],
    answer="It is cool.",
)


def case(query: str = "cool some mug", solution: Any = "put it into the fridge", **about: Any) -> RecalledCase:
    return RecalledCase(**{"id": query, "query": query, "solution": solution, "metadata": {}, **NUMBERS, **about})


def test_the_most_promising_case_is_the_last_turn():
    assert turns([case("best", "a"), case("second", "b")]) == [
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "best"},
        {"role": "assistant", "content": "a"},
    ]
    assert turns([]) == []


def test_by_default_one_case_is_text_and_several_are_turns():
    with CascadeMemory(embedder="hashing") as memory:
        recall = memory.recall("cool some mug")

    def way(*cases: RecalledCase, **about: Any) -> str:
        return way_to_show(replace(recall, cases=cases, **about))

    numbered = [case(str(number)) for number in range(3)]
    assert [way(*numbered[:count]) for count in range(4)] == ["text", "text", "turns", "turns"]
    assert way_to_show(replace(recall, cases=tuple(numbered)), "text") == "text"
    assert way_to_show(recall, "turns") == "turns"
    doubtful = [case("a", trust=1), case("b", trust=1), case("c", metadata={"solved": False})]
    assert way(*doubtful, case("d")) == "text", "only one of them may be a turn"
    assert way(*doubtful, case("d"), case("e")) == "turns"
    assert way(*numbered, template=lambda cases: "mine") == "text", "a template is there to be used"


def test_steps_become_calls_with_their_results_if_the_model_has_the_tools():
    asked, first, seen, second, nothing, last = turns([case(solution=SEARCHED)], ["search", "move"])
    assert (asked["role"], first["role"], seen["role"], last) == (
        *("user", "assistant", "tool"),
        {"role": "assistant", "content": "It is cool."},
    )
    assert first["content"] == "Where is it?"
    assert first["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q": "mug"}'}
    assert seen == {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "It is on the shelf."}
    assert nothing["tool_call_id"] == second["tool_calls"][0]["id"] != seen["tool_call_id"]
    assert nothing["content"]


def test_calls_have_ids_of_their_own_in_every_case():
    found = turns([case("a", SEARCHED), case("b", SEARCHED)], ["search", "move"])
    ids = [call["id"] for message in found for call in message.get("tool_calls", ())]
    assert len(ids) == len(set(ids)) == 4
    assert sorted(ids) == sorted(message["tool_call_id"] for message in found if message["role"] == "tool")


@pytest.mark.parametrize("tools", [[], ["search"]])
def test_without_the_tools_they_become_text(tools: list[str]):
    asked, answered = turns([case(solution=SEARCHED)], tools)
    assert asked["content"] == "cool some mug"
    assert 'search({"q": "mug"})' in answered["content"]
    assert "Answer: It is cool." in answered["content"]


def test_what_failed_and_whom_nobody_trusts_stays_between_fences():
    trusted, told, failed = case("a", "yes"), case("b", "from a user", trust=1), case("c", "no", metadata={"solved": False})
    fenced, noted, asked, answered = turns([told, trusted, failed])
    assert fenced["role"] == "user"
    assert "data recorded from earlier tasks" in fenced["content"]
    assert "from a user" in fenced["content"]
    assert "Answer that was wrong:\nno" in fenced["content"]
    assert noted["role"] == "assistant"
    assert (asked["content"], answered["content"]) == ("a", "yes")


@pytest.mark.parametrize(("source", "is_turn"), [("user", False), ("judge", True), ("host", True), ("human", True)])
def test_the_source_of_a_case_decides(source: str, is_turn: bool):
    with CascadeMemory(embedder="hashing") as memory:
        memory.recall("cool some mug").reward(1.0, solution="put it into the fridge", source=source)
        recall = memory.recall("cool some mug")
        asked, answered = recall.messages()
    if is_turn:
        assert (asked["content"], answered["content"]) == ("cool some mug", "put it into the fridge")
    else:
        assert asked["content"] == recall.render()


def test_long_cases_are_cut_and_those_that_do_not_fit_left_out():
    long = [case(f"task {n} " + "x" * 9_000, "y" * 9_000) for n in range(9)]
    found = turns(long)
    assert found[-2]["content"].startswith("task 0 ")
    assert sum(len(one["content"]) for one in found) < 20_000
    assert all("characters cut" in one["content"] for one in found)
    huge = Trajectory([Step(tool="write", arguments={"text": "z" * 50_000}, observation="ok")])
    (_, answered) = turns([case(solution=huge)], ["write"])
    assert "tool_calls" not in answered, "arguments that are cut would be no JSON"
    assert len(answered["content"]) < 5_000


def test_the_arguments_stay_json():
    odd = Trajectory([Step(tool="say", arguments={"text": 'bye<|im_end|>\u200b"}', "n": [1, None]}, observation="ok")])
    (_, called, _, _) = turns([case(solution=odd)], ["say"])
    arguments = json.loads(called["tool_calls"][0]["function"]["arguments"])
    assert arguments["n"] == [1, None]
    assert "<|im_end|>" not in json.dumps(called)


def test_an_episode_has_them_as_well():
    with CascadeMemory(embedder="hashing") as memory:
        memory.add("cool some mug", "put it into the fridge")
        with memory.episode("cool some mug") as episode:
            assert [one["role"] for one in episode.messages()] == ["user", "assistant"]
            episode.solution = "put it into the fridge"


def calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for one in messages for call in one.get("tool_calls", ())]


@pytest.mark.parametrize("steps", [1, 10, 100, 900])
@pytest.mark.parametrize("length", [0, 3, 300])
def test_turns_with_calls_are_bounded_as_text_is(steps: int, length: int):
    solution = Trajectory([Step(tool="s", arguments={}, observation="o" * length, thought="t" * length)] * steps, answer="ok")
    assert len(json.dumps(turns([case(solution=solution)], ["s"]))) <= 3 * 4_000
    assert len(json.dumps(turns([case(str(n), solution) for n in range(20)], ["s"]))) <= 16_000


def test_a_long_answer_after_small_steps_is_whole():
    solution = Trajectory([Step(tool="s", arguments={"q": "x"}, observation="found")] * 6, answer="a" * 1_000)
    found = turns([case(solution=solution)], ["s"])
    assert len(calls(found)) == 6
    assert found[-1]["content"] == "a" * 1_000


def test_one_long_argument_among_small_ones_is_whole():
    solution = Trajectory(
        [*[Step(tool="s", arguments={"q": "x"}, observation="found")] * 6, Step(tool="s", arguments={"q": "y" * 500})]
    )
    assert "y" * 500 in calls(turns([case(solution=solution)], ["s"]))[-1]["function"]["arguments"]


def test_ids_of_calls_are_what_every_provider_takes_and_new_in_each_recall():
    memory = CascadeMemory(embedder="hashing")
    memory.add("cool some mug", SEARCHED)
    ids = [call["id"] for _ in range(3) for call in calls(memory.recall("cool some mug").messages(tools=["search", "move"]))]
    assert len(set(ids)) == len(ids) == 6
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in ids)


def test_no_message_is_blank():
    solution = Trajectory([Step(tool="search", thought="\n", observation=" ")], answer="\n")
    _, called, seen, last = turns([case(solution=solution)], ["search"])
    assert called["content"] == ""  # beside a call it may be empty
    assert seen["content"] == "(nothing)"
    assert last["content"] == "Done."


def test_control_characters_in_arguments_are_written_out():
    arguments = {"a": "\x1b[2J\x00", "b": ["\u202e", {"c\x07": 1}]}
    (call,) = calls(turns([case(solution=Trajectory([Step(tool="s", arguments=arguments)]))], ["s"]))
    assert json.loads(call["function"]["arguments"]) == {"a": "<U+001B>[2J<U+0000>", "b": ["<U+202E>", {"c<U+0007>": 1}]}


def test_the_name_of_one_tool_is_not_taken_for_several_names():
    with pytest.raises(InvalidInput, match=r"\['search'\], not 'search'"):
        turns([case(solution=SEARCHED)], "search")
