"""A local server that speaks OpenAI's chat API, with any function from messages to a message behind it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from local_http import Handler, running


@contextlib.contextmanager
def serving(reply: Callable[[Sequence[BaseMessage]], AIMessage]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the server's base URL and the list of requests that it received."""
    received: list[dict[str, Any]] = []

    class Answering(Handler):
        def do_POST(self) -> None:
            asked = self.asked()
            received.append(asked)
            message = reply(convert_to_messages(asked["messages"]))
            calls = [
                {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["args"])}}
                for one in message.tool_calls
            ]
            said = {"role": "assistant", "content": message.text or None, **({"tool_calls": calls} if calls else {})}
            why = "tool_calls" if calls else "stop"
            head = {"id": "chatcmpl-1", "created": 0, "model": asked["model"]}
            if asked.get("stream"):
                said["tool_calls"] = [{"index": index, **one} for index, one in enumerate(calls)]
                chunks = [{"delta": said, "finish_reason": None}, {"delta": {}, "finish_reason": why}]
                events = [
                    json.dumps({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, **one}]}) for one in chunks
                ]
                stream = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
                self.send(200, stream.encode(), Content_Type="text/event-stream")
                return
            answer = {
                **head,
                "object": "chat.completion",
                "choices": [{"index": 0, "message": said, "finish_reason": why}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
            self.send(200, json.dumps(answer).encode(), Content_Type="application/json")

    with running(Answering) as url:
        yield url, received
