"""A webhook: who may post scores, how often, how much, and what is answered."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from score_platform import RUN, TRACE

from cascade_memory.capabilities.scores import webhook as module
from cascade_memory.capabilities.scores.routes import SECRET as NAME
from cascade_memory.capabilities.scores.routes import routes
from cascade_memory.capabilities.scores.webhook import Webhook, signature
from cascade_memory.errors import InvalidInput, StoreBusy
from cascade_memory.mcp_server.guard import Guard
from cascade_memory.mcp_server.serve import with_others
from cascade_memory.serving.crowd import VOUCH

SECRET = "a-secret-of-some-length"
ONE = {"id": "7", "name": "thumb", "value": True, "judge": "human", "at": 1.7e9, "trace_id": TRACE, "by": "ann"}
BODY = json.dumps({"scores": [ONE]}).encode()


class Taking:
    """A memory that only takes scores."""

    def __init__(self, error: Exception | None = None) -> None:
        self.taken: list[Any] = []
        self.error = error
        self.scores = SimpleNamespace(collect=self._collect)

    def _collect(self, scores: Any, **_: Any) -> None:
        if self.error is not None:
            raise self.error
        self.taken += scores


def hook(memory: Any = None, **options: Any) -> tuple[Webhook, Any]:
    memory = Taking() if memory is None else memory
    return Webhook(memory, **{"secret": SECRET, **options}), memory


def post(app: Any, body: Any = BODY, *, method: str = "POST", path: str = "/", **headers: str) -> tuple[int, dict[str, Any]]:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://memory") as client:
            names = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
            return await client.request(method, path, content=body, headers=names)

    answer = asyncio.run(asked())
    return answer.status_code, answer.json()


def signed(app: Any, body: bytes = BODY, *, at: float | None = None, **options: Any) -> tuple[int, dict[str, Any]]:
    return post(app, body, x_cascade_signature=signature(SECRET, body, at), **options)


def test_a_signed_score_is_applied():
    app, memory = hook(platform="mine")
    assert signed(app) == (200, {"scores": 1})
    (one,) = memory.taken
    assert (one.platform, one.id, one.value, one.judge, one.trace_id, one.by) == ("mine", "7", True, "human", TRACE, "ann")


def test_the_signature_of_langfuse_is_known_and_its_news_of_prompts_are_no_scores():
    app, memory = hook(platform="langfuse")
    body = json.dumps({"id": "e", "type": "prompt-version", "action": "created", "prompt": {}}).encode()
    assert post(app, body, x_langfuse_signature=signature(SECRET, body)) == (200, {"scores": 0})
    older = signature(SECRET, BODY).replace(",v1=", ",s=")
    assert post(app, x_langfuse_signature=older) == (200, {"scores": 1})
    assert memory.taken[0].platform == "langfuse"


@pytest.mark.parametrize(
    "forged",
    ["", "v1=abc", "t=1,v1=zz", "t=x,v1=" + "0" * 64, "t=99999999999999999999,v1=" + "0" * 64, "t=1,v1=" + "0" * 64, "ü"],
)
def test_a_forged_signature_is_refused(forged):
    app, memory = hook()
    status, said = post(app, x_cascade_signature=forged)
    assert status == 401
    assert "signature" in said["error"]
    assert memory.taken == []


def test_a_signature_of_another_body_or_another_secret_or_another_time_is_refused():
    app, memory = hook()
    right = signature(SECRET, BODY)
    later = f"t={int(time.time()) + 1},{right.partition(',')[2]}"
    forged = (signature(SECRET, BODY + b" "), signature("another-secret-of-some-length", BODY), later)
    assert [post(app, x_cascade_signature=one)[0] for one in forged] == [401, 401, 401]
    assert memory.taken == []


def test_an_unsigned_request_is_refused_whatever_it_says():
    app, memory = hook()
    assert post(app)[0] == 401
    assert post(app, x_cascade_secret=SECRET)[0] == 401  # only LangSmith cannot sign
    assert memory.taken == []


@pytest.mark.parametrize("off", [-301.0, 302.0])
def test_a_signature_has_a_time(off):
    app, memory = hook()
    status, said = signed(app, at=time.time() + off)
    assert (status, memory.taken) == (403, [])
    assert "older than 300 seconds" in said["error"]


def test_a_replayed_request_is_refused(monkeypatch):
    app, memory = hook()
    began = time.time()
    sent = signature(SECRET, BODY, began + 200)
    assert post(app, x_cascade_signature=sent)[0] == 200
    again = post(app, x_cascade_signature=sent.replace("v1=", "s="))
    upper = post(app, x_cascade_signature=sent[:-64] + sent[-64:].upper())
    assert again == upper == (403, {"error": "this request was taken before"})
    monkeypatch.setattr("time.time", lambda: began + 499)
    assert post(app, x_langfuse_signature=sent)[0] == 403
    monkeypatch.setattr("time.time", lambda: began + 700)
    assert post(app, x_cascade_signature=sent)[1]["error"].startswith("the signature is older")
    assert len(memory.taken) == 1


def test_what_could_not_be_stored_may_be_sent_again():
    app, memory = hook(Taking(StoreBusy("another process is writing")))
    sent = signature(SECRET, BODY)
    assert post(app, x_cascade_signature=sent) == (503, {"error": "the scores could not be stored; try again later"})
    memory.error = None
    assert post(app, x_cascade_signature=sent) == (200, {"scores": 1})


def test_a_body_has_a_limit_and_is_not_read_beyond_it():
    app, memory = hook(most_bytes=1_000)
    taken = 0

    async def endless() -> Any:
        nonlocal taken
        while True:
            taken += 100
            yield b"x" * 100

    said = (413, {"error": "a body may have at most 1,000 bytes"})
    assert asyncio.run(_streamed(app, endless)) == 413
    assert taken <= 1_200
    assert signed(app, b"x" * 1_001) == said
    assert post(app, b"", content_length="9" * 30) == said
    assert post(app, b"", content_length="-1") == said
    assert signed(hook()[0], b" " * 2**20 + BODY)[0] == 413
    assert memory.taken == []


async def _streamed(app: Any, body: Any) -> int:
    """Post a body without a length; httpx itself would read it to its end first."""
    parts, sent = body(), []

    async def receive() -> Any:
        return {"type": "http.request", "body": await anext(parts), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_only_post_is_answered(method):
    async def status() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=hook()[0]), base_url="http://memory") as client:
            return await client.request(method, "/")

    answer = asyncio.run(status())
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body: an answer should be an object"),
        (b"[]", "should be an object"),
        (b"\xff", "JSON in UTF-8"),
        (b"[" * 100_000, "should be an object"),
        (b"{}", "scores should be a list, and is missing"),
        ({"judge": "god"}, "scores[0].judge should be one of human, judge, code, agent, and is not 'god'"),
        ({"value": [1]}, "scores[0].value should be a number, true or false, or a text"),
        ({"id": "x" * 257}, "scores[0].id has 257 characters"),
        ({"at": 1e300}, "at must be a number from 0"),
        ({"deleted": 1}, "scores[0].deleted should be true or false, and is not 1"),
        ({"name": "a\x00b"}, "scores[0].name contains the control character"),
    ],
)
def test_other_bodies_are_refused_in_a_sentence(body, said):
    app, memory = hook()
    raw = body if isinstance(body, bytes) else json.dumps({"scores": [{**ONE, **body}]}).encode()
    status, answer = signed(app, raw)
    assert status == 422
    assert said in answer["error"]
    assert memory.taken == []


def test_a_body_that_stops_halfway_is_refused():
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(hook()[0]({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send))
    assert sent[0]["status"] == 422


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(hook()[0]({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send))
    assert sent[0]["status"] == 408


def test_only_a_proven_sender_is_vouched_for():
    app, memory = hook()
    vouched: list[bool] = []
    free = True

    def vouch() -> bool:
        vouched.append(free)
        return free

    async def crowded(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, VOUCH: vouch}, receive, send)

    assert post(crowded)[0] == 401
    assert post(crowded, x_cascade_signature=signature(SECRET, b"another body"))[0] == 401
    assert vouched == []
    sent = signature(SECRET, BODY)
    free = False
    assert post(crowded, x_cascade_signature=sent)[0] == 503
    free = True
    assert post(crowded, x_cascade_signature=sent)[0] == 200  # what was not taken may be sent again
    assert (vouched, len(memory.taken)) == ([False, True], 1)


@pytest.mark.parametrize("options", [{"weights": "oops"}, {"weights": {"a": -1}}, {"labels": {"a": 2}}, {"labels": ["a"]}])
def test_weights_and_labels_are_checked_at_once(options):
    with pytest.raises(InvalidInput):
        hook(**options)


def test_an_error_is_answered_without_its_traceback(caplog):
    app, _ = hook(Taking(RuntimeError("/home/ann/memory is on fire")))
    assert signed(app) == (500, {"error": "the scores could not be stored"})
    assert "on fire" in caplog.text


RULE = {
    "rule_id": "d75d7417-0c57-4655-88fe-1db3cda3a47a",
    "start_time": "2026-04-05T01:28:54.734491+00:00",
    "end_time": "2026-04-05T01:28:56.492563+00:00",
    "runs": [
        {
            "id": RUN,
            "trace_id": TRACE,
            "feedback_stats": {
                "correctness": {"n": 2, "avg": 0.75, "values": {}},
                "category": {"n": 0, "avg": None, "values": {"CONCEPTUAL": 1}},
                "mixed": {"n": 0, "avg": None, "values": {"A": 1, "B": 1}},
            },
        },
        {"id": RUN, "trace_id": TRACE, "feedback_stats": None},
    ],
}


def test_a_rule_of_langsmith_posts_means_and_proves_itself_by_the_secret():
    app, memory = hook(platform="langsmith")
    body = json.dumps(RULE).encode()
    assert post(app, body, x_cascade_secret="another-secret-of-some-length")[0] == 401
    assert post(app, body, x_cascade_secret=SECRET) == (200, {"scores": 2})
    assert post(app, body, x_cascade_secret=SECRET)[0] == 403
    assert [(one.name, one.value, one.span_id, one.trace_id, one.judge) for one in memory.taken] == [
        ("correctness", 0.75, RUN, TRACE, "judge"),
        ("category", "CONCEPTUAL", RUN, TRACE, "judge"),
    ]
    assert len({one.id for one in memory.taken}) == 2


def test_a_short_secret_is_refused_and_none_is_shown():
    with pytest.raises(InvalidInput, match="16 characters or more") as caught:
        Webhook(Taking(), secret="too-short")
    assert "too-short" not in str(caught.value)
    assert SECRET not in repr(hook()[0])


def test_the_mcp_server_answers_webhooks_beside_mcp_only_with_a_secret(monkeypatch):
    monkeypatch.delenv(NAME, raising=False)
    memory: Any = Taking()
    assert routes(memory) == {}
    monkeypatch.setenv(NAME, SECRET)

    async def mcp(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    guard = Guard(mcp, token="a-token-of-some-length", per_minute=0, alive=lambda: None)
    assert with_others(guard, {}) is guard
    app = with_others(guard, routes(memory))
    assert signed(app, path="/mcp")[0] == 401  # a signature is no token
    assert signed(app, path="/scores/webhook") == (200, {"scores": 1})
    assert post(app, path="/scores/webhook", authorization="Bearer a-token-of-some-length")[0] == 401  # nor the other way round
    assert post(app, path="/scores/langsmith", x_cascade_secret=SECRET)[0] == 200
    assert [one.platform for one in memory.taken] == ["webhook", "langsmith"]
