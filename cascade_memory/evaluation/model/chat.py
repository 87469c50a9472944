"""The interface of a chat model, and the record of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Message: TypeAlias = "dict[str, str]"  # "role" and "content"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, and its numbers of tokens."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt of a request: its reply or its error."""

    number: int  # from 1
    seconds: float
    reply: Reply | None = None
    error: str | None = None


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
        """Return the reply; ``note`` is called for every attempt. Raise ``ModelUnavailable`` if all attempts fail."""
        ...
