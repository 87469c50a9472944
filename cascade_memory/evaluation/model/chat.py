"""What is asked of a chat model, and what is noted of each try."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Message: TypeAlias = "dict[str, str]"  # "role" and "content"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, and what it was charged as."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One request that was sent: its reply, or what went wrong."""

    number: int  # from 1
    seconds: float
    reply: Reply | None = None
    error: str | None = None


Note: TypeAlias = Callable[[Try], None]


class Chat(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """The model, as rows call it."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """How it samples: kept in every row."""
        ...

    def complete(self, messages: Sequence[Message], note: Note) -> Reply:
        """Return the reply; ``note`` is told of every try. ``ModelUnavailable`` when there is none to be had."""
        ...
