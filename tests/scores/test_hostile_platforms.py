"""Whatever a platform or a sender writes into a field: it is read, left out, or refused in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest
from score_platform import RUN, TRACE, feedback

from cascade_memory.capabilities.scores import Score, Unread, langfuse, langsmith, phoenix
from cascade_memory.capabilities.scores.asking import Platform
from cascade_memory.capabilities.scores.webhook import scores_in
from cascade_memory.errors import InvalidInput, PlatformFailed

DEEP: Any = reduce(lambda inner, _: {"a": inner}, range(900), {})
ODD = (
    *(
        None,
        True,
        False,
        0,
        -7,
        10**400,
        1e308,
        math.inf,
        math.nan,
        "",
        " ",
        "x",
        "7",
        "\x00",
        "\ud800",
        "\u202e",
        "x" * 1_000_001,
    ),
    *([], [None], {}, {"a": None}, {"a": "b"}, {"": [1]}, DEEP, "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+23:59", "NUMERIC"),
)
AT = "2026-01-02T03:04:05Z"
SCORE = {
    "id": "s",
    "name": "helpful",
    "value": 0.5,
    "dataType": "NUMERIC",
    "source": "API",
    "updatedAt": AT,
    "subject": {"kind": "observation", "id": "o", "traceId": "t"},
    "authorUserId": "u",
}
NOTE = {
    "id": "a",
    "name": "correct",
    "annotator_kind": "HUMAN",
    "result": {"label": "yes", "score": 1.0},
    "updated_at": AT,
    "user_id": "u",
    "span_id": "00f0",
    "trace_id": "4bf9",
}
LISTED = {"trace_id": "4bf9", "spans": [{"span_id": "00f0"}]}
POSTED = {
    "id": "7",
    "name": "n",
    "value": 1,
    "judge": "human",
    "at": AT,
    "trace_id": "t",
    "span_id": "s",
    "by": "b",
    "deleted": False,
}
RULE = {
    "end_time": AT,
    "runs": [{"id": RUN, "trace_id": TRACE, "feedback_stats": {"n": {"n": 1, "avg": 1, "values": {"A": 1}}}}],
}


def spoilt(found: Any) -> Iterator[Any]:
    """Yield copies of JSON in each of which one value is odd, or missing."""
    yield from ODD
    if isinstance(found, dict):
        for name in found:
            yield {other: value for other, value in found.items() if other != name}
            yield from ({**found, name: value} for value in spoilt(found[name]))
    elif isinstance(found, list):
        for number in range(len(found)):
            yield from ([*found[:number], value, *found[number + 1 :]] for value in spoilt(found[number]))


def of_phoenix(answer: Any) -> Callable[[str], Any]:
    return lambda path: answer if path.endswith("/traces") else {"data": [NOTE], "next_cursor": None}


@pytest.mark.parametrize(
    ("collector", "right", "answering"),
    [
        (langsmith, [feedback(correction={"a": "b"}, value="x")], lambda answer: lambda _path: answer),
        (langfuse, {"data": [SCORE], "meta": {}}, lambda answer: lambda _path: answer),
        (phoenix, {"data": [LISTED], "next_cursor": None}, of_phoenix),
        (phoenix, {"data": [NOTE], "next_cursor": None}, lambda answer: lambda path: _traces_or(path, answer)),
    ],
)
def test_a_collector_reads_or_refuses_whatever_it_is_answered(collector, right, answering, monkeypatch):
    read, refused = 0, list[str]()
    monkeypatch.setattr(Platform, "__enter__", lambda self: self)  # it connects with nobody
    for answer in (right, *spoilt(right)):
        say = answering(answer)
        monkeypatch.setattr(Platform, "get", lambda _self, path, say=say, **_: say(path))
        try:
            found = list(collector.collect(url="http://localhost:1"))
        except PlatformFailed as error:
            refused.append(str(error))
        else:
            read += 1
            assert all(isinstance(one, (Score, Unread)) for one in found)
            assert all(_is_plain(one) for one in found if isinstance(one, Score))
    assert read > 20
    assert max(map(len, refused)) < 1_000


def _traces_or(path: str, answer: Any) -> Any:
    return {"data": [LISTED], "next_cursor": None} if path.endswith("/traces") else answer


def _is_plain(one: Score) -> bool:
    texts = [text for text in (one.id, one.name, one.value, one.trace_id, one.span_id, one.by) if isinstance(text, str)]
    assert isinstance(one.value, (float, bool, str, type(None)))
    assert not isinstance(one.value, float) or math.isfinite(one.value)
    return all(len(text) <= 1_000 and "\x00" not in text and "\ud800" not in text for text in texts)


@pytest.mark.parametrize(
    ("platform", "right"), [("mine", {"scores": [POSTED]}), ("langsmith", RULE), ("langfuse", {"type": "x"})]
)
def test_a_body_is_read_or_refused_whatever_it_is(platform, right):
    assert scores_in(platform, right) or platform == "langfuse"
    refused: list[str] = []
    for body in spoilt(right):
        try:
            found = scores_in(platform, body)
        except InvalidInput as error:
            refused.append(str(error))
        else:
            assert all(_is_plain(one) for one in found)
    assert max(map(len, refused)) < 1_000
