"""A local server that behaves as servers of small models were seen to: it counts tokens, refuses null, and thinks aloud."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from local_http import Handler, running

Asked = dict[str, Any]
Say = Callable[[Asked], "str | dict[str, Any]"]


@dataclass
class Real:
    """What a test sees of the server, and how it behaves."""

    say: Say  # the text, or the whole message
    context: int = 1_000_000  # words of prompt and reply together, as vLLM counts; more are refused
    refuses_null: bool = False  # with HTTP 500
    cuts: bool = False  # reads only the last words of what is too long, as Ollama does
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        """Answer a request."""
        with self.lock:
            self.asked.append(asked)
        if self.refuses_null and any(one.get("content", "") is None for one in asked["messages"]):
            return 500, {"error": {"message": "'NoneType' object is not iterable"}}
        words = sum(len(str(one.get("content")).split()) for one in asked["messages"])
        reply = int(asked.get("max_tokens") or 0)
        if words + reply > self.context and not self.cuts:
            said = (
                f"This model's maximum context length is {self.context} tokens. However, you requested {words + reply} tokens "
                f"({words} in the messages, {reply} in the completion). Please reduce the length of the messages or completion."
            )
            return 400, {"object": "error", "message": said, "type": "BadRequestError", "code": 400}
        said_ = self.say(asked)
        message = {"role": "assistant", "content": said_} if isinstance(said_, str) else {"role": "assistant", **said_}
        usage = {"prompt_tokens": min(words, self.context), "completion_tokens": 3}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


@contextlib.contextmanager
def serving(real: Real) -> Iterator[Real]:
    """Serve on a free port."""

    class Answering(Handler):
        def do_POST(self) -> None:
            status, body = real.answer(self.asked())
            with contextlib.suppress(OSError):  # who asked may have gone
                self.send(status, json.dumps(body).encode())

    with running(Answering) as real.url:
        yield real
