"""A local server that speaks as much of Chroma's v2 API as this library uses, and answers as a test tells it to."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

FRESH = {"hnsw": {"space": "cosine", "ef_search": 130}, "spann": None, "embedding_function": {"type": "legacy"}}


def honest(value: Any) -> bytes:
    """Return a whole HTTP answer: status 200 and JSON."""
    return raw(json.dumps(value).encode())


def raw(body: bytes, status: int = 200, *headers: str) -> bytes:
    """Return a whole HTTP answer."""
    head = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Content-Type: application/json", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@dataclass
class Collection:
    """What is kept of a collection."""

    said: dict[str, Any]
    vectors: dict[str, Any] = field(default_factory=dict)


class Imitation:
    """Keeps collections in RAM. ``twist`` gets the verb and the right answer, and returns the bytes to send."""

    def __init__(self) -> None:
        self.url = ""
        self.collections: dict[str, Collection] = {}
        self.asked: list[str] = []
        self.twist: Callable[[str, Any], bytes | Iterator[bytes]] = lambda _, right: honest(right)

    def answer(self, method: str, path: str, body: Any) -> tuple[str, Any]:
        """Return the verb and the right answer to a request."""
        parts = path.split("?")[0].strip("/").split("/")[2:]
        if parts[0] in ("heartbeat", "pre-flight-checks"):
            return parts[0], {"nanosecond heartbeat": 1, "max_batch_size": 5_000}
        rest = parts[5:] if parts[4:5] == ["collections"] else []
        if not rest:
            return ("create", self._made(body)) if method == "POST" else ("list", self._listed(path))
        if method == "DELETE":
            return "drop", self.collections.pop(rest[0], None) and {}
        kept = next((one for one in self.collections.values() if one.said["id"] == rest[0]), Collection({}))
        return rest[1], getattr(self, f"_{rest[1]}")(kept, body)

    def _listed(self, path: str) -> list[Any]:
        start = int(path.partition("offset=")[2].partition("&")[0] or 0)
        return [one.said for one in self.collections.values()][start : start + 100]

    def _made(self, body: Any) -> dict[str, Any]:
        name = body["name"]
        if name not in self.collections:
            said = {"id": str(uuid.uuid4()), "name": name, "metadata": body["metadata"], "configuration_json": FRESH}
            place = {"tenant": "default_tenant", "database": "default_database", "dimension": None, "schema": None}
            self.collections[name] = Collection({**said, **place})
        return self.collections[name].said

    def _upsert(self, kept: Collection, body: Any) -> dict[str, Any]:
        kept.vectors.update(zip(body["ids"], np.array(body["embeddings"], np.float32), strict=True))
        return {}

    def _delete(self, kept: Collection, body: Any) -> dict[str, Any]:
        for one in body["ids"]:
            kept.vectors.pop(one, None)
        return {"deleted": len(body["ids"])}

    def _count(self, kept: Collection, _: Any) -> int:
        return len(kept.vectors)

    def _query(self, kept: Collection, body: Any) -> dict[str, Any]:
        asked = np.array(body["query_embeddings"][0], np.float32)
        distances = sorted((float(1 - vector @ asked), one) for one, vector in kept.vectors.items())[: body["n_results"]]
        return {"ids": [[one for _, one in distances]], "distances": [[far for far, _ in distances]], "include": ["distances"]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    imitation: Imitation

    def _any(self) -> None:
        told = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        verb, right = self.imitation.answer(self.command, self.path, json.loads(told) if told else None)
        self.imitation.asked.append(verb)
        said = self.imitation.twist(verb, right)
        with contextlib.suppress(OSError):  # who asked may have gone
            for part in [said] if isinstance(said, bytes) else said:
                self.wfile.write(part)
                self.wfile.flush()
        self.close_connection = said != honest(right)

    do_GET = do_POST = do_PUT = do_DELETE = _any

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def shutdown_request(self, request: Any) -> None:
        with contextlib.suppress(OSError):  # at once, with what was not read
            request.shutdown(socket.SHUT_RDWR)
        self.close_request(request)


@contextlib.contextmanager
def imitated() -> Iterator[Imitation]:
    """Serve until the end of the block."""
    imitation = Imitation()
    http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"imitation": imitation}))
    imitation.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield imitation
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
