"""A local server that speaks OpenAI's chat API, and fails as it is told to."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from local_http import Handler, running

KEY = "sk-right-key"
SLOW = 1.0  # seconds that a slow reply takes


@dataclass
class Server:
    """What a test sees of it. ``fault`` says of the n-th request, from 1, how it fails; None: not at all."""

    url: str
    fault: Callable[[int], str | None]
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def content(say: str, prompt: str) -> bytes:
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 3, "total_tokens": len(prompt.split()) + 3}
    choice = {"index": 0, "message": {"role": "assistant", "content": say}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


class _Answering(Handler):
    told: ClassVar[Server]
    say: ClassVar[Callable[[str], str]]
    lock: ClassVar[threading.Lock]

    def do_POST(self) -> None:
        asked = self.asked()
        with self.lock:
            self.told.asked.append(asked)
            self.told.keys.append(self.headers["Authorization"])
            how = self.told.fault(len(self.told.asked))
        if self.headers["Authorization"] not in (None, f"Bearer {KEY}"):
            how = "wrong key"
        prompt = asked["messages"][-1]["content"]
        with contextlib.suppress(OSError):  # who asked may have gone
            self._answer(how, content(type(self).say(prompt), prompt))

    def _answer(self, how: str | None, right: bytes) -> None:
        if how is None:
            self._send(200, right)
        elif how == "slow":
            time.sleep(SLOW)
            self._send(200, right)
        elif how == "trickle":
            self._send(200, right, length=10_000)
            for _ in range(200):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.02)
        elif how == "dropped":
            self.close_connection = True
            self.connection.close()
        elif how == "cut off":
            self.close_connection = True
            self._send(200, right[: len(right) // 2], length=len(right))
        elif how.startswith("redirect"):
            self._send(307, b"", Location=how.split()[1])
        else:
            said = {
                "rate limit": (429, b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}'),
                "quota": (429, b'{"error": {"message": "pay first", "code": "insufficient_quota"}}'),
                "error": (500, b"oops"),
                "overloaded": (503, b'{"error": "no room"}'),
                "malformed": (200, b"<html>gateway</html>"),
                "empty": (200, b'{"choices": []}'),
                "no content": (200, b'{"choices": [{"message": {"role": "assistant"}}]}'),
                "wrong key": (401, f'{{"error": {{"message": "not {self.headers["Authorization"]}"}}}}'.encode()),
                "unknown": (404, b'{"error": {"message": "no such model"}}'),
                "refused": (400, b'{"error": {"message": "top_k is not known"}}'),
                "long wait": (429, b"{}"),
            }[how]
            self._send(*said, **{"Retry-After": {"long wait": "3600", "rate limit": "0.01"}.get(how, "")})

    def _send(self, status: int, body: bytes, length: int | None = None, **headers: str) -> None:
        self.send(status, body, length=length, **{name: value for name, value in headers.items() if value})


@contextlib.contextmanager
def serving(say: Callable[[str], str], fault: Callable[[int], str | None] = lambda n: None) -> Iterator[Server]:
    """Serve a model that answers the last message with ``say``."""
    kind = type("Answering", (_Answering,), {"say": staticmethod(say), "lock": threading.Lock()})
    with running(kind) as url:
        kind.told = Server(url, fault)
        yield kind.told
