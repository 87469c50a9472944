"""Sends requests to a chat model, logs them, and counts tokens and costs.

A request with a temporary failure is sent again, with growing pauses, until it succeeds or the time is up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.judging.answers import without_thoughts
from cascade_memory.evaluation.model.chat import Chat, Message, Note, Prompt, PromptTooLong, Reply, Try, as_one
from cascade_memory.evaluation.model.request_log import RequestLog, request_key

FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds


class Passing(Exception):
    """A temporary failure; ``pause`` is the number of seconds that the server asked us to wait."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The number of retries, and the seconds that all attempts of one request may take together."""

    retries: int
    seconds: float

    def ask(self, once: Callable[[float], Reply], note: Note) -> Reply:
        """Call ``once(seconds left)`` until it succeeds, and pass each attempt to ``note`` before anything else happens.

        Raises ``ModelUnavailable`` if the retries or the seconds are used up.
        """
        began = time.monotonic()
        for number in range(1, self.retries + 2):
            sent = time.monotonic()
            try:
                reply = once(began + self.seconds - sent)
            except Passing as error:
                note(Try(number=number, seconds=time.monotonic() - sent, error=str(error)))
                self._wait(error, number, began)
            except ModelUnavailable as error:
                too_long = isinstance(error, PromptTooLong)
                note(Try(number=number, seconds=time.monotonic() - sent, error=str(error), too_long=too_long))
                raise
            else:
                note(Try(number=number, seconds=time.monotonic() - sent, reply=reply))
                return reply
        raise AssertionError("the last try returns or raises")

    def _wait(self, error: Passing, number: int, began: float) -> None:
        tries = "1 try" if number == 1 else f"{number} tries"
        if number > self.retries:
            raise ModelUnavailable(f"{error} ({tries})") from error
        pause = pause_before(number) if error.pause is None else error.pause
        left = began + self.seconds - time.monotonic()
        if pause >= left:
            raise ModelUnavailable(f"{error} ({tries}); the next one would exceed the limit of {self.seconds:g} s") from error
        time.sleep(pause)


def pause_before(number: int) -> float:
    """Compute the pause after an attempt: twice as long each time, randomly shortened by up to a half to spread the load.

    >>> 0.25 <= pause_before(1) <= 0.5 and 1.0 <= pause_before(3) <= 2.0 and pause_before(99) <= 60
    True
    """
    return min(_LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(number - 1, 10)) * random.uniform(0.5, 1.0)


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
