"""A language model that answers questions with a search tool and with recalled trajectories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from cascade_memory import RecalledCase, Step, Trajectory, clean_text
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message, PromptTooLong, Reply, ToolCall
from cascade_memory.evaluation.model.model_solver import prompt
from cascade_memory.evaluation.model.written_calls import calls_in
from cascade_memory.evaluation.search.tool import SearchTool
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.tasks.task import Item
from cascade_memory.visible import shortened

MOST_CALLS = 5  # tool calls per question, as in the paper
INSTRUCTION = (
    "You are a research assistant. Answer the question at the end. Split a hard question into simpler ones, look for the facts "
    "with the tool, and put them together.\n"
    "In each turn do one of two things:\n"
    "1. Call the tool. Then write nothing besides the call.\n"
    "2. Give the final answer, once you know all that the question asks for. Write the answer alone, as short as possible, "
    "and no explanation.\n"
    f"You may call the tool {MOST_CALLS} times at most for the question; count your calls. Call it at least once before you "
    "answer, even if you believe that you know the answer."
)
_NO_MORE = f"This search was not made: {MOST_CALLS} are allowed, and they are used up. Give the final answer now."
_MOST_QUERY, _MOST_THOUGHT, _MOST_ANSWER = 1_000, 4_000, 4_000  # characters


class Judge(Protocol):
    """Compares an answer with the right ones."""

    def __call__(self, question: str, answer: str, right: Sequence[str]) -> float:
        """Return the reward, 0 or 1."""
        ...


class SearchingSolver:
    """Lets a model call a search tool until it answers. A case stores the trajectory: the calls, the results, the answer.

    A reply with tool calls is not an answer, whatever else it says. When the calls are used up, one more reply is asked for;
    if it is another call, the question has no answer. An answer without any call is judged, but makes no case.
    """

    def __init__(self, items: Sequence[Item], asking: Asking, tool: SearchTool, judge: Judge) -> None:
        self._items, self._asking, self._tool, self._judge = items, asking, tool, judge
        self.failed = 0  # searches that failed
        self.called = 0  # searches that were asked for

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the question at this place of the stream."""
        item = self._items[place]
        messages = prompt(INSTRUCTION, f"Question: {item.query}", cases)
        steps: list[Step] = []
        try:
            reply = self._reply(messages)
            while reply.calls and len(steps) < MOST_CALLS:
                messages += self._answered(reply, steps)
                reply = self._reply(messages)
        except PromptTooLong:
            reply = Reply("")
        self.called += len(steps)
        answer = "" if reply.calls else clean_text(reply.text).strip()
        reward = self._judge(item.query, answer, item.label) if answer else 0.0
        done = Trajectory(steps, answer=shortened(answer, _MOST_ANSWER)) if steps else None
        return Attempt(reward >= 1.0, done, steps=len(steps))

    def _reply(self, messages: Sequence[Message]) -> Reply:
        """Ask the model; a call that the server passes on as text, as the model wrote it, is read as a call too."""
        reply = self._asking.reply(messages)
        written = () if reply.calls else calls_in(reply.text, [self._tool.name])
        return replace(reply, text="", calls=written) if written else reply

    def _answered(self, reply: Reply, steps: list[Step]) -> list[Message]:
        """Make the calls of a reply, add them to the steps, and return the messages that continue the conversation."""
        calls: list[dict[str, Any]] = []
        results: list[Message] = []
        thought = shortened(clean_text(reply.text).strip(), _MOST_THOUGHT)
        for number, call in enumerate(reply.calls):
            result = _NO_MORE
            if len(steps) < MOST_CALLS:
                step = self._made(call, thought if number == 0 else "")
                steps.append(step)
                result = step.observation
            function = {"name": call.name, "arguments": _sendable(call.arguments)}
            calls.append({"id": call.id, "type": "function", "function": function})
            results.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return [{"role": "assistant", "content": reply.text, "tool_calls": calls}, *results]

    def _made(self, call: ToolCall, thought: str) -> Step:
        """Make a call; the answer to a wrong call says what is wrong with it.

        A wrong call counts as a call, but it is left out of the text by which a case is found.
        """
        tool = self._tool
        query = _text_in(call.arguments, tool.parameter)
        if call.name != tool.name or query is None:
            wrong = f'The call is wrong: the only tool is {tool.name}, with one text: {{"{tool.parameter}": "..."}}.'
            action = shortened(clean_text(f"{call.name}({call.arguments})"), _MOST_QUERY)
            return Step(action=action, observation=wrong, thought=thought, failed=True)
        found = tool.search(query)
        self.failed += found.failed
        arguments = {tool.parameter: query}
        return Step(tool=tool.name, arguments=arguments, observation=found.text, thought=thought, failed=found.failed)


def _text_in(arguments: str, name: str) -> str | None:
    """Return the text of a parameter; None if the arguments are not JSON with such a text."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    found = cast("Mapping[str, Any]", given).get(name) if isinstance(given, Mapping) else None
    return shortened(clean_text(found).strip(), _MOST_QUERY) or None if isinstance(found, str) else None


def _sendable(arguments: str) -> str:
    """Return the arguments if they are a JSON object, or else an empty one: many servers fail at others in the history."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"
