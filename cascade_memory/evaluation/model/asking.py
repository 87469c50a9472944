"""Sends requests to a chat model, logs them, and counts tokens and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.thoughts import without_thoughts
from cascade_memory.evaluation.model.chat import Chat, Message, Prompt, PromptTooLong, Reply, Try, as_one
from cascade_memory.evaluation.model.request_log import RequestLog, request_key


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a million tokens, in any currency."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        if not (self.prompt >= 0 and self.completion >= 0):
            raise InvalidInput("prices must be numbers of at least 0, for a million tokens each")


class Asking:
    """Asks a model. With a log, requests that were answered before a crash are not sent, or paid for, again.

    With ``prompt="authors"``, the messages of each request are sent as one message of the user.

    >>> from cascade_memory.evaluation.model.chat import Reply
    >>> class Parrot:
    ...     name, settings = "parrot", {}
    ...     def complete(self, messages, note):
    ...         return Reply(messages[-1]["content"], prompt_tokens=2_000_000, completion_tokens=1_000_000)
    >>> asking = Asking(Parrot(), prices=Prices(prompt=0.5, completion=2.0))
    >>> asking([{"role": "user", "content": "hello"}]), asking.account()["cost"]
    ('hello', 3.0)
    """

    def __init__(self, chat: Chat, *, log: Path | None = None, prices: Prices | None = None, prompt: Prompt = "chat") -> None:
        self.chat = chat
        self._prompt_form: Prompt = prompt
        self._log = None if log is None else RequestLog(log)
        self._prices = prices
        self._prompt = self._completion = self._requests = self._too_long = 0

    def logged(self, log: Path) -> Asking:
        """Return a copy with a log and its own counts."""
        return Asking(self.chat, log=log, prices=self._prices)

    def of(self, chat: Chat) -> Asking:
        """Return a copy that asks another model, with the same log, prices and form of the prompt."""
        return Asking(chat, log=self.log, prices=self._prices, prompt=self._prompt_form)

    @property
    def log(self) -> Path | None:
        """The file of the log."""
        return None if self._log is None else self._log.path

    def __call__(self, messages: Sequence[Message]) -> str:
        """Return what the model wrote."""
        return self.reply(messages).text

    def reply(self, messages: Sequence[Message]) -> Reply:
        """Return the model's whole reply, with the tools that it wants to call, and without what it thought aloud.

        Raises ``PromptTooLong`` if the server takes no prompt of this length; the refusal is counted, and logged like a reply.
        """
        messages = as_one(messages) if self._prompt_form == "authors" else messages
        key = request_key(self.chat.name, self.chat.settings, messages)
        self._requests += 1
        try:
            reply = None if self._log is None else self._log.answered(key)
            if reply is None:
                reply = self.chat.complete(messages, lambda tried: self._note(key, messages, tried))
        except PromptTooLong:
            self._too_long += 1
            raise
        self._prompt += reply.prompt_tokens
        self._completion += reply.completion_tokens
        return replace(reply, text=without_thoughts(reply.text))

    def _note(self, key: str, messages: Sequence[Message], tried: Try) -> None:
        if self._log is not None:
            self._log.append(key, self.chat.name, messages, tried)

    def account(self) -> dict[str, Any]:
        """Return the requests, tokens and costs so far as columns of a row; the cost is None without prices."""
        cost = None
        if self._prices is not None:
            cost = (self._prompt * self._prices.prompt + self._completion * self._prices.completion) / 1e6
        return {
            "requests": self._requests,
            "too_long": self._too_long,  # requests that the server refused because of the prompt's length
            "prompt_tokens": self._prompt,
            "completion_tokens": self._completion,
            "tokens": self._prompt + self._completion,
            "cost": cost,
            "request_log": None if self._log is None else str(self._log.path),
        }
