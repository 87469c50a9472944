"""A server on this machine that plays a platform from which scores are read, and misbehaves as a test tells it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from local_http import Handler, running

KEY = "lsv2_pt_3f1c9a7e5b2d4860_of_a_test"
SECRET = "sk-lf-7d0e2c46-of-a-test"
RUN, TRACE = "6ab80f10-d79c-4fa2-b441-922ed6feb630", "1d1ec0de-d79c-4fa2-b441-922ed6feb630"
Query = dict[str, list[str]]
Answer = Callable[[str, Query], Any]  # a path and a query to JSON, or to what the functions below return


@dataclass
class Asked:
    path: str
    query: Query
    headers: dict[str, str]


@dataclass
class Played:
    """What a test sees of the platform. ``answer`` may be replaced at any time."""

    url: str
    answer: Answer
    asked: list[Asked] = field(default_factory=list)

    def queries(self, path: str = "") -> list[Query]:
        return [one.query for one in self.asked if one.path.endswith(path)]


@dataclass(frozen=True)
class Odd:
    """An answer that is not simply JSON with status 200."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False  # a byte now and then, until whoever asked has gone


class _Playing(Handler):
    played: ClassVar[Played]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        self.played.asked.append(Asked(parts.path, query, {name.lower(): value for name, value in self.headers.items()}))
        found = self.played.answer(parts.path, query)
        if not isinstance(found, Odd):
            found = Odd(body=json.dumps(found).encode())
        with contextlib.suppress(OSError):  # who asked may have gone
            self.send(found.status, b"" if found.drips else found.body, length=10**6 if found.drips else None, **found.headers)
            while found.drips:
                self.wfile.write(b" ")
                time.sleep(0.002)


@contextlib.contextmanager
def playing(answer: Answer) -> Iterator[Played]:
    """Serve what ``answer`` returns."""
    kind = type("Playing", (_Playing,), {})
    with running(kind) as url:
        kind.played = Played(url.removesuffix("/v1"), answer)
        yield kind.played


def page_of(items: list[Any], query: Query, size: int) -> tuple[list[Any], str | None]:
    """Return the page after the cursor in a query, and the cursor of the next one."""
    start = int(query.get("cursor", ["0"])[0])
    return items[start : start + size], str(start + size) if start + size < len(items) else None


def in_turn(*answers: Any) -> Answer:
    """Give each answer once, and the last one for ever."""
    left = list(answers)
    return lambda _path, _query: left.pop(0) if len(left) > 1 else left[0]


def feedback(number: int = 0, **fields: Any) -> dict[str, Any]:
    """Make an item of LangSmith's feedback."""
    return {
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "key": "correctness",
        "score": 0.5,
        "value": None,
        "comment": None,
        "correction": None,
        "run_id": RUN,
        "trace_id": TRACE,
        "created_at": "2026-01-02T03:04:05",
        "modified_at": "2026-01-02T03:04:05.5",
        "feedback_source": {"type": "app", "metadata": {}, "user_id": "u-1", "user_name": "Ann"},
        **fields,
    }
