"""The interface of a chat model, and the record of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from cascade_memory.errors import InvalidInput, ModelUnavailable

Message: TypeAlias = "dict[str, Any]"  # "role" and "content", and for tools what OpenAI's chat API adds
Prompt: TypeAlias = Literal["chat", "authors"]  # the instruction as a system message; or everything as one user message


def as_one(messages: Sequence[Message]) -> list[Message]:
    r"""Join messages into one of the user, as the paper's authors ask: some chat templates take no system message.

    Calls of tools and what they return stay messages of their own.

    >>> as_one([{"role": "system", "content": "Add."}, {"role": "user", "content": "1 + 1"}])
    [{'role': 'user', 'content': 'Add.\n\n1 + 1'}]
    """
    first = next((place for place, message in enumerate(messages) if "tool_calls" in message), len(messages))
    joined = "\n\n".join(str(message["content"]) for message in messages[:first])
    return [{"role": "user", "content": joined}, *messages[first:]]


def check_form(prompt: Prompt, show: str) -> None:
    """Refuse cases as turns in a prompt of one message."""
    if prompt == "authors" and show == "turns":
        raise InvalidInput("one message for everything has no turns to show cases in: choose prompt='chat' or show='text'")


def declared_form(prompt: Prompt, show: str) -> dict[str, str]:
    """Return how a solver asks, as far as it is not the default, for rows."""
    return {**({} if show == "text" else {"show": show}), **({} if prompt == "chat" else {"prompt": prompt})}


class PromptTooLong(ModelUnavailable):
    """The server takes no prompt of this length. Only this task is lost; the run can go on."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool. The arguments are the text that it wrote, which may be anything."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, its numbers of tokens, and the tools that it wants to call."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt of a request: its reply or its error."""

    number: int  # from 1
    seconds: float
    reply: Reply | None = None
    error: str | None = None
    too_long: bool = False  # it failed since the prompt is too long, as it would again


Note: TypeAlias = Callable[[Try], None]


class Chat(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """The name of the model in rows."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The sampling settings, which every row stores."""
        ...

    def complete(self, messages: Sequence[Message], note: Note) -> Reply:
        """Return the reply; ``note`` is called for every attempt. Raise ``ModelUnavailable`` if all attempts fail.

        A prompt that is too long for the model raises ``PromptTooLong``.
        """
        ...


@runtime_checkable
class TakesTools(Protocol):
    """A chat model that can call tools."""

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> Chat:
        """Return this model with tools, described as in OpenAI's chat API; its replies may have ``calls``."""
        ...
