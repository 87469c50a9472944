"""A LangChain agent that stops making its favourite mistake. The model is SCRIPTED; agent, tool and memory are real.

    python examples/warned_agent.py

Each ticket asks for a release, and names its build. The scripted model likes to deploy "latest" instead; the tool refuses that.
A ticket has one attempt only. The model never looks at the cases that it is shown, but it heeds a warning: then it deploys the
build that the ticket names. So whatever gets better here comes from the warnings.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import ToolException, tool
from pydantic import PrivateAttr

from cascade_memory.langchain import CascadeMemory

SERVICES = ["billing", "search", "mail", "login", "reports"]
TICKETS, QUARTERS = 80, 4


@tool
def deploy(service: str, version: str) -> str:
    """Deploy a version of a service."""
    if version == "latest":
        raise ToolException("refused: there is no build 'latest'")
    return f"{service} runs {version}"


deploy.handle_tool_error = True  # the model sees the error


class Scripted(BaseChatModel):
    """Mostly deploys "latest", unless it was warned. Put a real model in its place."""

    _random: random.Random = PrivateAttr(default_factory=lambda: random.Random(0))
    _warnings: list[str] = PrivateAttr(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """The warnings that it was shown."""
        return self._warnings

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        task = next(message.text for message in reversed(messages) if message.type == "human")
        service, build = re.findall(r"release (\w+), build (\d+)", task)[-1]
        last = messages[-1]
        if last.type != "tool":
            return self._call(service, "latest" if self._random.random() < 0.8 else build)
        if "cascade_warning" in last.additional_kwargs:
            self._warnings.append(str(last.text))
            return self._call(service, build)
        return AIMessage(str(last.text))

    def _call(self, service: str, version: str) -> AIMessage:
        call_id = f"call_{self._random.getrandbits(32):08x}"
        arguments = {"service": service, "version": version}
        return AIMessage("", tool_calls=[{"name": "deploy", "args": arguments, "id": call_id}])


def play(*, warnings: bool, tickets: int = TICKETS) -> tuple[list[bool], list[str]]:
    """Work through the tickets; return for each whether the deploy failed, and the warnings that the model was shown."""
    rng, model = random.Random(1), Scripted()
    failed: list[bool] = []
    judge = lambda episode: "refused" not in episode.answer  # noqa: E731 - the world judges, never the model
    with CascadeMemory(embedder="hashing", learn="inline", reward_fn=judge, warnings=warnings) as memory:
        agent = create_agent(model, [deploy], middleware=[memory.middleware()])
        for number in range(tickets):
            ticket = f"Please release {rng.choice(SERVICES)}, build {100 + number}"
            result = agent.invoke({"messages": [("user", ticket)]})
            failed.append("refused" in result["messages"][-1].text)
    return failed, model.warnings


def main() -> None:
    """Play the tickets without and with warnings, and print how many deploys failed in each quarter."""
    print(f"SCRIPTED model, real agent, tool and memory; deploys that failed in each quarter of {TICKETS} tickets:")
    seen: list[str] = []
    for name, warnings in (("no warnings", False), ("with warnings", True)):
        failed, shown = play(warnings=warnings)
        seen += shown[-1:]
        size = TICKETS // QUARTERS
        quarters = "  ".join(f"{sum(failed[place : place + size]):3}" for place in range(0, TICKETS, size))
        print(f"  {name:14} {quarters}")
    print("\nThe last warning, as the model saw it:\n")
    print(*seen, sep="\n")


if __name__ == "__main__":
    main()
