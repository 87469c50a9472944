"""The log of all requests to a model, as lines of JSON, so that no reply is paid for twice."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.model.chat import Message, PromptTooLong, Reply, ToolCall, Try


class RequestLog:
    """A log of requests and replies; after a crash, a repeated request gets the logged replies in their original order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._before: list[Message] = []  # of the entry before
        self._replies: defaultdict[str, deque[Reply | PromptTooLong]] = defaultdict(deque)
        if path.exists():
            self._read()

    def _read(self) -> None:
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        try:
            for line in whole.splitlines():
                entry = json.loads(line)
                if entry.get("too_long"):
                    self._replies[entry["key"]].append(PromptTooLong(str(entry["error"])))
                elif entry["reply"] is not None:
                    calls = tuple(ToolCall(*call) for call in entry.get("calls", ()))
                    found = Reply(entry["reply"], entry["prompt_tokens"], entry["completion_tokens"], calls)
                    self._replies[entry["key"]].append(found)
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidInput(f"{self.path} holds something other than requests to a model: {error!r}") from error
        if len(whole) < len(raw):  # the process was killed while writing the last line
            with open_own(self.path, "r+b") as file:
                file.truncate(len(whole))

    def answered(self, key: str) -> Reply | None:
        """Take the next logged reply to a request, if it was answered before this log was opened.

        Raises ``PromptTooLong`` if the request was refused because of its length.
        """
        waiting = self._replies.get(key)
        found = waiting.popleft() if waiting else None
        if isinstance(found, PromptTooLong):
            raise found
        return found

    def append(self, key: str, model: str, messages: Sequence[Message], tried: Try) -> None:
        """Log one attempt; the first messages are only counted, not written, if the previous request began with them too."""
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._before, messages, strict=False)))
        self._before = list(messages)
        entry: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "model": model,
            "key": key,
            "try": tried.number,
            "seconds": round(tried.seconds, 4),
            **({"as_before": same} if same else {}),
            "messages": list(messages[same:]),
            "reply": None if tried.reply is None else tried.reply.text,
            "prompt_tokens": 0 if tried.reply is None else tried.reply.prompt_tokens,
            "completion_tokens": 0 if tried.reply is None else tried.reply.completion_tokens,
            "error": tried.error,
        }
        if tried.too_long:
            entry["too_long"] = True
        if tried.reply is not None and tried.reply.calls:
            entry["calls"] = [[call.id, call.name, call.arguments] for call in tried.reply.calls]
        with open_own(self.path, "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")


def request_key(model: str, settings: Mapping[str, Any], messages: Sequence[Message]) -> str:
    """Hash a request: the model, its settings and the messages.

    >>> request_key("m", {}, [{"role": "user", "content": "a"}]) == request_key("m", {}, [{"role": "user", "content": "b"}])
    False
    """
    text = json.dumps([model, settings, list(messages)], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
