"""A SIMULATED model: it follows any case that it is shown. Without one it knows a declared share of the tickets."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from help_desk.world import ACTIONS, PROCEDURES, WORDS

KNOWN = 0.25  # the share of tickets that it can solve without a case
_CASE = re.compile(r"(?:Steps that solved it|Solution):\n(.*?)(?=\n---|\nTask: |\Z)", re.DOTALL)
_VERB = re.compile(rf"\b({'|'.join(ACTIONS)})\b")
_TICKET = re.compile(r"Ticket about (\w+)-(\d+): ([^.]+)\.")


def plan_for(text: str) -> tuple[list[str], str]:
    """Return the actions that the model chooses for the last ticket in a text, and the item that they are for."""
    device, number, words = _TICKET.findall(text)[-1]
    rng = random.Random(f"{device}-{number}")
    item = f"{device}-{number}"
    known = rng.random() < KNOWN
    guess = rng.sample(ACTIONS, 2)
    if shown := _CASE.search(text):
        steps = list(dict.fromkeys(_VERB.findall(shown.group(1))))
        if len(steps) >= 2:
            return steps[:2], item
    if known:
        trouble = next(trouble for trouble, ways in WORDS.items() if words in ways)
        return list(PROCEDURES[device, trouble]), item
    return guess, item


class ScriptedModel(BaseChatModel):
    """A chat model that answers in tool calls, in ReAct text, or in one line with the whole plan, depending on ``style``."""

    style: Literal["tools", "react", "plan"] = "tools"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the model itself: the desk's tools are built into it."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next message."""
        text = "\n".join(str(message.text) for message in messages if message.type in ("human", "system"))
        steps, item = plan_for(text)
        if self.style == "plan":
            return AIMessage(f"{steps[0]} {item}, then {steps[1]} {item}")
        if self.style == "react":
            done = len(re.findall(r"^Observation:", text.rsplit("Ticket about", 1)[1], re.MULTILINE))
            if done == len(steps):
                return AIMessage(f"Thought: That was all I can do.\nFinal Answer: {item} was taken care of.")
            return AIMessage(f"Thought: Step {done + 1}.\nAction: {steps[done]}\nAction Input: {item}")
        done = sum(message.type == "tool" for message in messages)
        if done == len(steps):
            return AIMessage(f"{item} was taken care of.")
        call = {"name": steps[done], "args": {"item": item}, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
        return AIMessage(content="", tool_calls=[call])
