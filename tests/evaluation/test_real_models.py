"""What small models and their servers really do: on a local server that behaves so, nothing ends a run or spoils a verdict."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from real_model_server import Asked, Real, serving

from cascade_memory.cli import main
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.evaluation.bench import watching
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.judging.answers import code_in, without_thoughts
from cascade_memory.evaluation.judging.labels import exact
from cascade_memory.evaluation.model import Asking, Model, OpenAICompatible
from cascade_memory.evaluation.model.acting import ActingSolver, thought_and_action
from cascade_memory.evaluation.model.responses import is_too_long
from cascade_memory.evaluation.model.written_calls import calls_in
from cascade_memory.evaluation.search.agent import SearchingSolver
from cascade_memory.evaluation.search.local import LocalSearch
from cascade_memory.evaluation.search.questions import Passage
from cascade_memory.evaluation.search.stage import by_labels
from cascade_memory.evaluation.search.tool import PassageTool, schema
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.task import FileTask, Item

TASK = FileTask(name="desk", file="desk.jsonl", judge=exact, instruction="Name the intent.")
ASIDE = {"ms_per_task", "seconds", "request_log"}


def client(real: Real, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(**{"base_url": real.url, "model": "small", "retries": 0, "max_tokens": 50, **options})


# -- R1: a prompt that is too long -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "complaint",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 2113 tokens (65 in the messages)",
        "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 2048 tokens",
        "the request exceeds the available context size (2048 tokens), try increasing it exceed_context_size_error",
        "Requested tokens (2500) exceed context window of 2048",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Please reduce the length of the messages. context_length_exceeded",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    ],
)
def test_servers_say_in_many_ways_that_a_prompt_is_too_long(complaint: str):
    assert is_too_long(400, complaint)


@pytest.mark.parametrize(
    "complaint",
    [
        "top_k is not known",
        "max_tokens must be at least 1",
        "the model small does not exist",
        "Invalid value for 'temperature'",
    ],
)
def test_other_refusals_are_no_matter_of_length(complaint: str):
    assert not is_too_long(400, complaint)


@pytest.mark.slow
def test_a_prompt_that_is_too_long_loses_its_task_and_not_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [{"task": ("long " * 80 if n % 3 == 0 else "") + f"card number {n}?", "label": "card"} for n in range(9)]
    (tmp_path / "desk.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    asked: dict[str, Any] = {"data": tmp_path, "seeds": 1, "methods": ["zero-shot"], "progress": False}
    with serving(Real(lambda _: "card", context=100)) as real:
        (row,) = measure(TASK, solver=Model(chat=client(real)), out=tmp_path / "rows.jsonl", **asked)
        assert (row["n"], row["rate"], row["too_long"], row["requests"]) == (9, 6 / 9, 3, 9)
        (tmp_path / "rows.jsonl").unlink()
        sent = len(real.asked)
        (again,) = measure(TASK, solver=Model(chat=client(real)), out=tmp_path / "rows.jsonl", **asked)
        assert len(real.asked) == sent, "a refusal is logged, and not asked for again"
        assert {k: v for k, v in again.items() if k not in ASIDE} == {k: v for k, v in row.items() if k not in ASIDE}
        options = ["--stream", str(tmp_path / "desk.jsonl"), "--methods", "zero-shot", "--seeds", "1", "--jobs", "1"]
        where = [
            "--model",
            "small",
            "--base-url",
            real.url,
            "--sampling",
            '{"max_tokens": 50}',
            "--out",
            str(tmp_path / "o.jsonl"),
        ]
        assert main(["bench", "run", *options, *where]) == 0
    assert "3 requests were refused as too long" in capsys.readouterr().out


class Door:
    """A world that is never over, and says a lot."""

    instruction = "Open the door."
    solved = over = False

    def begin(self, place: int) -> str:
        return f"There is door {place}."

    def limit(self, place: int) -> int:
        return 12

    def act(self, action: str) -> str:
        return "Nothing happens. " * 5

    def close(self) -> None: ...


def test_a_conversation_that_grows_too_long_ends_the_attempt_with_what_was_done():
    with serving(Real(lambda _: "Action: knock", context=180)) as real:
        attempt = ActingSolver(Door(), Asking(client(real)), thinks=False).attempt(0, ())
    assert not attempt.success
    assert isinstance(attempt.answer, Trajectory)
    assert 3 <= attempt.steps < 12
    assert len(attempt.answer.steps) == attempt.steps == len(real.asked) - 1


# -- R2: the conversation has what was done, and nothing that the model invented -------------------------------------


def test_what_a_model_invents_does_not_stay_in_the_conversation():
    reply = "Thought: I try.\nAction: knock\nObservation: The door opens!\nThought: Done.\nAction: go in"
    with serving(Real(lambda _: reply)) as real:
        attempt = ActingSolver(Door(), Asking(client(real))).attempt(0, ())
    assert isinstance(attempt.answer, Trajectory)
    assert {step.action for step in attempt.answer.steps} == {"knock"}
    said = [one["content"] for one in real.asked[-1]["messages"] if one["role"] == "assistant"]
    assert set(said) == {"Thought: I try.\nAction: knock"}
    assert "opens" not in json.dumps(real.asked[-1])


def test_a_log_holds_each_message_once(tmp_path: Path):
    with serving(Real(lambda _: "Action: knock")) as real:
        ActingSolver(Door(), Asking(client(real), log=tmp_path / "log.jsonl"), thinks=False).attempt(0, ())
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sum(len(entry["messages"]) for entry in entries) == len(real.asked[-1]["messages"])
    told: list[Any] = []
    for entry, asked in zip(entries, real.asked, strict=True):
        told = [*told[: entry.get("as_before", 0)], *entry["messages"]]
        assert told == asked["messages"]


# -- R3 and R4: tools ------------------------------------------------------------------------------------------------

PASSAGES = [Passage("Jaws", "A film directed by Steven Spielberg."), Passage("Steven Spielberg", "He was born in Cincinnati.")]
WRITTEN = [
    '{"name": "search", "arguments": {"query": "Jaws"}}',
    '<tool_call>\n{"name": "search", "arguments": {"query": "Jaws"}}\n</tool_call>',
    '```json\n{"name": "search", "parameters": {"query": "Jaws"}}\n```',
    'I look it up.\n{"function": {"name": "search", "arguments": "{\\"query\\": \\"Jaws\\"}"}}',
    '[TOOL_CALLS][{"name": "search", "arguments": {"query": "Jaws"}}]',
    "<function=search>\n<parameter=query>\nJaws\n</parameter>\n</function>",
    '<function=search>{"query": "Jaws"}</function>',
    '[search(query="Jaws")]',
    "<think>I should look.</think>\nsearch(query='Jaws')",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_call_that_a_server_passes_on_as_text_is_a_call(written: str):
    def say(asked: Asked) -> str:
        return "Steven Spielberg" if asked["messages"][-1]["role"] == "tool" else written

    tool = PassageTool(LocalSearch(PASSAGES, "bm25"))
    with serving(Real(say, refuses_null=True)) as real:
        solver = SearchingSolver(
            [Item("Who directed Jaws?", ["Steven Spielberg"])], Asking(client(real).with_tools([schema(tool)])), tool, by_labels
        )
        attempt = solver.attempt(0, ())
    assert (attempt.success, attempt.steps, solver.called) == (True, 1, 1)
    assert isinstance(attempt.answer, Trajectory)
    assert attempt.answer.steps[0].arguments == {"query": "Jaws"}
    assert {asked["tool_choice"] for asked in real.asked} == {"auto"}
    assert all(one["content"] is not None for asked in real.asked for one in asked["messages"])


@pytest.mark.parametrize(
    "text",
    [
        "Steven Spielberg",
        "I would search for it.",
        '{"name": "Steven Spielberg", "arguments": {}}',
        '{"search": "Jaws"}',
        "search(",
        "search(__import__('os').system('x'))",
        "The search(es) found nothing.",
    ],
)
def test_an_answer_is_no_call(text: str):
    assert calls_in(text, ["search"]) == ()


def test_a_text_of_brackets_takes_no_time():
    assert calls_in("search " + "{" * 90_000, ["search"]) == ()
    assert calls_in("search(" * 10_000 + ")", ["search"]) == ()
    assert without_thoughts("<think>" * 100_000) == ""


# -- R5: thoughts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"<think>maybe \boxed{rate}</think>" "\n\ncard", "card"),
        ("<THINK>rate</THINK>card", "card"),
        ("rate, no ...\n</think>\n\ncard", "card"),
        ("[THINK]rate[/THINK]card", "card"),
        ("<think>a</think><think>b</think>card<think>c</think>", "card"),
        ("<think>rate, rate, rate", ""),
        ("card", "card"),
    ],
)
def test_thoughts_are_no_part_of_an_answer(reply: str, answer: str):
    with serving(Real(lambda _: reply)) as real:
        assert Asking(client(real))([{"role": "user", "content": "?"}]) == answer


def test_nor_of_an_action():
    with serving(Real(lambda _: "<think>Action: look</think>\nAction: go to bed 1")) as real:
        attempt = ActingSolver(Door(), Asking(client(real)), thinks=False).attempt(0, ())
    assert isinstance(attempt.answer, Trajectory)
    assert attempt.answer.steps[0].action == "go to bed 1"
    assert "think" not in json.dumps(real.asked[-1]["messages"][2:])


# -- R6: the form ----------------------------------------------------------------------------------------------------


def test_no_form_of_an_answer_has_a_word_that_could_be_copied():
    for name, entry in CATALOGUE.items():
        if entry.make is not None:
            task = entry.make(entry)
            for source in getattr(task, "sources", ()):
                assert not re.search(r"boxed\{\w", source.template.form), name


def test_a_case_is_shown_in_the_form_that_is_asked_for():
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.0)
    walk = Trajectory(
        [Step(action="knock", observation="Yes?", thought="Is anybody in?"), Step(action="open", observation="It opens.")]
    )
    case = RecalledCase(id="c", query="There is a door.", solution=walk, metadata={}, **numbers)
    with serving(Real(lambda _: "Action: knock")) as real:
        ActingSolver(Door(), Asking(client(real))).attempt(0, [case])
    shown = real.asked[0]["messages"][1]["content"]
    assert "Thought: Is anybody in?\nAction: knock\nYes?\nAction: open\nIt opens." in shown
    assert "> knock" not in shown


def test_cases_may_be_shown_as_earlier_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["card", "loan", "rate"]
    lines = [json.dumps({"task": f"{words[n % 3]} number {n}?", "label": words[n % 3]}) for n in range(12)]
    (tmp_path / "desk.jsonl").write_text("\n".join(lines))

    def say(asked: Asked) -> str:
        return str(asked["messages"][-1]["content"]).split()[0]

    with serving(Real(say)) as real:
        options = ["--stream", str(tmp_path / "desk.jsonl"), "--methods", "similarity", "--seeds", "1", "--jobs", "1", "--json"]
        where = ["--model", "small", "--base-url", real.url, "--show", "turns", "--out", str(tmp_path / "o.jsonl")]
        assert main(["bench", "run", *options, *where]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["declared"]["show"] == "turns"
    shown = [asked["messages"] for asked in real.asked if len(asked["messages"]) > 2]
    assert len(shown) == row["shown"].count("1") > 0
    for messages in shown:
        assert [one["role"] for one in messages[:3]] == ["system", "user", "assistant"]
        assert messages[2]["content"] in words
        assert "earlier tasks" not in json.dumps(messages)


# -- R8: readers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fence", ["python", "py", "python3", "Python", ""])
def test_code_is_found_behind_any_name_of_its_language(fence: str):
    assert code_in(f"Here:\n```{fence}\nanswer = 1\n```\nDone.", "python") == "answer = 1"


@pytest.mark.parametrize(
    "reply",
    [
        "Action: [go to bed 1]",
        "Action 1: go to bed 1",
        "**Action 1:** `go to bed 1`",
        "Thought 1: so\nAction 1: [go to bed 1]\nObservation 1: You see a bed.",
        "Action: go to bed 1\n\nObservation: You are in bed.\nAction: sleep",
    ],
)
def test_an_action_is_found_however_it_is_dressed(reply: str):
    assert thought_and_action(reply)[1] == "go to bed 1"


# -- smaller ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_long_run_says_how_far_it_is_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "EVERY", 0.0)
    (tmp_path / "desk.jsonl").write_text("\n".join(json.dumps({"task": f"card {n}", "label": "card"}) for n in range(4)))
    asked: dict[str, Any] = {"data": tmp_path, "seeds": 1, "methods": ["zero-shot"]}
    with serving(Real(lambda _: "card")) as real:
        measure(TASK, solver=Model(chat=client(real)), out=tmp_path / "rows.jsonl", **asked)
        assert "desk, zero-shot, seed 0: 4 of 4 tasks, 4 solved" in capsys.readouterr().err
        measure(TASK, solver=Model(chat=client(real)), out=tmp_path / "more.jsonl", progress=False, **asked)
    assert capsys.readouterr().err == ""
