"""A local server that speaks OpenAI's chat API, with any function from messages to a message behind it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages


@contextlib.contextmanager
def serving(reply: Callable[[Sequence[BaseMessage]], AIMessage]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the server's base URL and the list of requests that it received."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
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
                self._send("text/event-stream", "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]))
                return
            answer = {
                **head,
                "object": "chat.completion",
                "choices": [{"index": 0, "message": said, "finish_reason": why}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
            self._send("application/json", json.dumps(answer))

        def _send(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
