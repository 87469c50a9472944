"""What stands before the server on HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.guard import MAX_BYTES, VOUCH, Guard, Rate
from cascade_memory.mcp_server.serve import Listening

TOKEN = "a-token-of-some-length"


async def reads_all(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers with the size of what it was sent."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def asked(
    guard: Guard,
    *,
    path: str = "/mcp",
    method: str = "POST",
    body: list[bytes] | None = None,
    vouch: Any = None,
    **headers: str,
) -> tuple[int, str]:
    parts = [b"{}"] if body is None else list(body)
    sent: list[Any] = []

    async def receive() -> Any:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: Any = {"type": "http", "method": method, "path": path, "headers": raw, "client": ("127.0.0.1", 1)}
    asyncio.run(guard(scope if vouch is None else {**scope, VOUCH: vouch}, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()


def guard(**options: Any) -> Guard:
    settings = {"token": None, "per_minute": 0, "alive": lambda: None, **options}
    return Guard(reads_all, **settings)


def test_without_a_token_requests_pass():
    assert asked(guard()) == (200, "2")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer ü"])
def test_a_wrong_token_is_refused(header):
    status, body = asked(guard(token=TOKEN), authorization=header)
    assert status == 401
    assert "Authorization: Bearer TOKEN" in json.loads(body)["error"]


def test_the_right_token_passes():
    assert asked(guard(token=TOKEN), authorization=f"Bearer {TOKEN}")[0] == 200
    assert asked(guard(token=TOKEN), authorization=f"bearer  {TOKEN}")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "", "http://[", "ü"])
def test_pages_of_other_origins_are_refused(origin):
    assert asked(guard(), origin=origin)[0] == 403


def test_pages_on_this_machine_may_call():
    assert asked(guard(), origin="http://localhost:3000")[0] == 200


def test_large_requests_are_refused_whether_they_say_so_or_not():
    assert asked(guard(), content_length=str(MAX_BYTES + 1))[0] == 413
    assert asked(guard(), content_length="many")[0] == 413
    assert asked(guard(), body=[b" " * 400_000] * 3)[0] == 413
    assert asked(guard(), body=[b" " * 400_000, b"{}", b" " * 400_000]) == (200, "800002")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"id": "\\uD800"}', b'{"id": "\xed\xa0\x80"}', '{"id": 1}'.encode("utf-16")]
)
def test_what_is_no_json_goes_no_further(body):
    assert asked(guard(), body=[body])[0] == 400


def test_a_client_that_asks_too_often_is_told_to_wait():
    now = [0.0]
    rate = Rate(60, clock=lambda: now[0])
    assert [rate.allows("a") for _ in range(61)] == [True] * 60 + [False]
    assert rate.allows("b")
    now[0] += 1.0
    assert [rate.allows("a"), rate.allows("a")] == [True, False]
    one = guard(per_minute=1)
    assert [asked(one)[0], asked(one)[0]] == [200, 429]


def test_who_has_no_token_uses_up_nothing_of_those_who_have_one():
    one = guard(token=TOKEN, per_minute=3)
    assert [asked(one)[0] for _ in range(5)] == [401, 401, 401, 429, 429]
    assert asked(one, authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("cascade_memory.mcp_server.guard.PATIENCE", 0.05)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [], "client": ("127.0.0.1", 1)}
    asyncio.run(guard()(scope, never, send))
    assert sent[0]["status"] == 408


def test_only_whole_requests_that_were_let_in_are_vouched_for():
    vouched: list[int] = []
    one = guard(token=TOKEN)

    def vouch() -> bool:
        vouched.append(1)
        return True

    asked(one, vouch=vouch)
    asked(one, vouch=vouch, authorization="Bearer wrong")
    asked(one, vouch=vouch, path="/health")
    asked(one, vouch=vouch, body=[b"{"], authorization=f"Bearer {TOKEN}")
    assert not vouched
    assert asked(one, vouch=vouch, authorization=f"Bearer {TOKEN}")[0] == 200
    assert len(vouched) == 1


def test_where_too_many_requests_are_being_answered_the_next_one_is_told_so():
    status, body = asked(guard(), vouch=lambda: False)
    assert status == 503
    assert "try again" in body


def test_health_is_looked_up_once_a_second_at_most():
    looked: list[int] = []
    one = guard(alive=lambda: looked.append(1))
    assert [asked(one, path="/health")[0] for _ in range(20)] == [200] * 20
    assert len(looked) == 1


def test_clients_that_were_quiet_longest_are_forgotten():
    rate = Rate(1, clock=lambda: 0.0)
    for client in range(10_050):
        rate.allows(str(client))
    known = [rate.allows(str(client)) for client in (10_049, 50, 49)]  # 10,000 of them; who is new takes somebody's place
    assert known == [False, False, True]


def test_health_needs_no_token():
    assert asked(guard(token=TOKEN), path="/health") == (200, '{"status": "ok"}')
    assert asked(guard(alive=lambda: 1 / 0), path="/health")[0] == 503


def test_nobody_listens_to_the_world_without_a_token():
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InvalidInput, match="can be reached from other machines"):
            Listening(host=host)
        assert Listening(host=host, token=TOKEN).host == host
    with pytest.raises(InvalidInput, match="16 characters"):
        Listening(token="short")
    assert Listening().host == "127.0.0.1"
    for wrong in ({"port": 99_999}, {"per_minute": -5}):
        with pytest.raises(InvalidInput, match="must be a whole number from"):
            Listening(**wrong)


@pytest.mark.parametrize("page", [{"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}])
def test_a_web_page_uses_up_nothing_of_those_who_may_call(page):
    guarded = guard(per_minute=5)
    assert {asked(guarded, method=method, **page)[0] for method in ("POST", "GET") for _ in range(10)} == {403, 429}
    assert asked(guarded)[0] == 200


def test_nobody_holds_a_stream_of_events_that_never_come():
    assert asked(guard(), method="GET", accept="text/event-stream")[0] == 405
    assert asked(guard(), method="DELETE")[0] == 405
