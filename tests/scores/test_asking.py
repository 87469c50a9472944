"""Platforms that are slow, moved, overloaded or broken; and the key, which nobody else may learn."""

from __future__ import annotations

import base64
import contextlib
import gzip
import logging
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from score_platform import KEY, SECRET, Odd, feedback, in_turn, playing

from cascade_memory import CascadeMemory
from cascade_memory.capabilities.scores import asking, langfuse, langsmith, phoenix
from cascade_memory.errors import InvalidInput, PlatformFailed

COLLECTORS = (langsmith, langfuse, phoenix)
RIGHT = {langsmith: [], langfuse: {"data": [], "meta": {}}, phoenix: {"data": [], "next_cursor": None}}


def busy(seconds: str, status: int = 429) -> Odd:
    return Odd(status, b"slow down", {"Retry-After": seconds} if seconds else {})


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_platform_that_is_busy_is_asked_again(collector, status, pauses):
    with playing(in_turn(busy("7", status), RIGHT[collector])) as platform:
        assert list(collector.collect(url=platform.url)) == []
    assert pauses == [7.0]


def test_no_pause_is_longer_than_a_minute_and_the_tries_have_an_end(pauses):
    with playing(in_turn(busy("86400"))) as platform, pytest.raises(PlatformFailed, match=r"status 429, 5 times$"):
        list(langsmith.collect(url=platform.url))
    assert pauses == [60.0] * 4
    assert len(platform.asked) == 5


def test_a_pause_may_be_a_date_and_nonsense_is_no_pause(pauses, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    answers = [busy(formatdate(1_800_000_020.0, usegmt=True)), busy("soon"), busy("-5"), busy(""), []]
    with playing(in_turn(*answers)) as platform:
        assert list(langsmith.collect(url=platform.url)) == []
    assert pauses[0] == 20.0
    assert 1.0 <= pauses[1] <= 2.0
    assert 2.0 <= pauses[2] <= 4.0
    assert 4.0 <= pauses[3] <= 8.0


def test_a_rate_limit_in_the_middle_of_the_pages_loses_nothing(pauses):
    full, rest = [feedback(number) for number in range(100)], [feedback(100)]
    with playing(in_turn(full, busy("1"), rest)) as platform:
        assert len(list(langsmith.collect(url=platform.url))) == 101
    assert pauses == [1.0]


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("status", [401, 403])
def test_an_expired_key_is_not_tried_again(collector, status, pauses):
    with playing(in_turn(Odd(status, KEY.encode()))) as platform, pytest.raises(PlatformFailed) as caught:
        list(collector.collect(url=platform.url))
    assert f"does not accept the key (status {status})" in str(caught.value)
    assert (len(platform.asked), pauses) == (1, [])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_key_follows_no_redirect(status):
    with playing(in_turn([])) as elsewhere:
        moved = Odd(status, b"", {"Location": f"{elsewhere.url}/feedback"})
        with playing(in_turn(moved)) as platform, pytest.raises(PlatformFailed, match="the key follows no redirect"):
            list(langsmith.collect(url=platform.url))
        assert elsewhere.asked == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"\xff", b"null"])
def test_what_is_no_json_is_said(body):
    with playing(in_turn(Odd(body=body))) as platform, pytest.raises(PlatformFailed, match="no JSON that can be read"):
        list(langsmith.collect(url=platform.url))


def test_an_answer_has_a_limit(monkeypatch, pauses):
    monkeypatch.setattr(asking, "LARGEST", 1_000)
    with (
        playing(in_turn(Odd(body=b"[" + b" " * 2_000 + b"]"))) as platform,
        pytest.raises(PlatformFailed, match="more than 1,000 bytes"),
    ):
        list(langsmith.collect(url=platform.url))


def test_an_answer_is_not_unpacked(pauses):
    packed = Odd(body=gzip.compress(b"[]"), headers={"Content-Encoding": "gzip"})
    with playing(in_turn(packed)) as platform, pytest.raises(PlatformFailed, match="compressed"):
        list(langsmith.collect(url=platform.url))


def test_an_answer_that_comes_byte_by_byte_has_a_deadline(monkeypatch, pauses):
    monkeypatch.setattr(asking, "SECONDS", 0.05)
    with (
        playing(in_turn(Odd(drips=True))) as platform,
        pytest.raises(PlatformFailed, match=r"not complete after 0.05 seconds, 5 times"),
    ):
        list(langsmith.collect(url=platform.url))


def test_headers_that_come_one_by_one_have_a_deadline(monkeypatch, pauses):
    monkeypatch.setattr(asking, "SECONDS", 0.2)
    monkeypatch.setattr(asking, "TRIES", 2)
    with listening() as (server, url):
        threading.Thread(target=_drip_headers, args=(server,), daemon=True).start()
        began = time.monotonic()
        with pytest.raises(PlatformFailed, match=r"did not answer within 0.2 seconds, 2 times"):
            list(langsmith.collect(url=url))
        assert time.monotonic() - began < 10.0


def test_an_answer_that_has_no_length_is_not_complete_where_it_was_cut(monkeypatch, pauses):
    monkeypatch.setattr(asking, "SECONDS", 0.2)
    monkeypatch.setattr(asking, "TRIES", 1)
    with listening() as (server, url):
        threading.Thread(target=_hold, args=(server, b"HTTP/1.1 200 OK\r\n\r\n[]"), daemon=True).start()
        with pytest.raises(PlatformFailed, match=r"not complete after 0.2 seconds, 1 times"):
            list(langsmith.collect(url=url))


@contextlib.contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def _drip_headers(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(2_000):
                    connection.sendall(b"x: y\r\n")
                    threading.Event().wait(0.02)  # sleeping takes no time here


def _hold(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        connection.sendall(answer)
        while connection.recv(4_096):
            pass


def test_a_platform_that_never_answers_is_left(monkeypatch, pauses):
    monkeypatch.setattr(asking, "SECONDS", 0.05)
    left = threading.Event()
    with playing(lambda _path, _query: left.wait(60) and []) as platform:
        with pytest.raises(PlatformFailed, match=r"did not answer within 0.05 seconds, 5 times"):
            list(langsmith.collect(url=platform.url))
        left.set()


def test_a_platform_that_is_not_there_is_said(pauses):
    with playing(in_turn([])) as platform:
        pass
    with pytest.raises(PlatformFailed, match=r"LangSmith at 127.0.0.1: it cannot be reached.*, 5 times"):
        list(langsmith.collect(url=platform.url))


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://h", "http://u:pw@h", "https://h/?k=v", "https://h#f", "https://[", "http://h:0", "https://h/ a"]
)
def test_an_address_has_no_password_and_is_not_repeated(url, monkeypatch):
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "no address")
    with pytest.raises(InvalidInput) as caught:
        list(langsmith.collect(url=url))
    assert str(caught.value) == "the address of LangSmith must look like https://host, without a key or a password in it"


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_key_is_not_sent_over_plain_http_to_another_machine(collector):
    with pytest.raises(InvalidInput, match="begins with http://, so anybody on the way could read the key"):
        list(collector.collect(url="http://platform.example"))


@pytest.mark.parametrize(("collector", "name"), [(langsmith, "LANGSMITH_API_KEY"), (langfuse, "LANGFUSE_SECRET_KEY")])
def test_a_missing_key_is_named(collector, name, monkeypatch):
    monkeypatch.setenv(name, " ")
    with pytest.raises(InvalidInput, match=f"^set the environment variable {name}$"):
        list(collector.collect(url="http://localhost:1"))


def test_a_key_with_a_line_break_in_it_is_refused_unsaid(monkeypatch):
    monkeypatch.setenv("LANGSMITH_API_KEY", f"{KEY}\nHost: evil")
    with pytest.raises(InvalidInput) as caught:
        list(langsmith.collect(url="http://localhost:1"))
    assert KEY not in str(caught.value)


def test_a_score_whose_texts_cannot_be_used_is_told_of_and_the_others_are_read():
    odd = [
        feedback(1, key="x" * 300),
        feedback(2, key="a\x00b"),
        feedback(3, id=" "),
        feedback(4, value="v" * 1_001, score=None),
    ]
    with playing(in_turn([*odd, feedback(5, score=None, value="go\x1b[31mod\ud800")])) as platform:
        *unread, one = langsmith.collect(url=platform.url)
    assert one.value == "good"
    assert len(unread) == 4
    assert unread[0].why.startswith("LangSmith: feedback[0].key has 300 characters")


def test_a_read_that_fails_halfway_yields_nothing_and_a_whole_one_the_oldest_first(pauses):
    newest_first = [feedback(number, modified_at=f"2026-01-02T{23 - number // 10:02d}:00:00Z") for number in range(110)]
    with playing(in_turn(newest_first[:100], Odd(500))) as platform:
        read = langsmith.collect(url=platform.url)
        with pytest.raises(PlatformFailed):
            next(read)
        platform.answer = in_turn(newest_first[:100], newest_first[100:])
        moments = [one.at for one in langsmith.collect(url=platform.url)]
    assert len(moments) == 110
    assert moments == sorted(moments)


_LEAKS = (Odd(401, f"bad key {KEY}".encode()), Odd(429), Odd(200, f'{{"{KEY}": 1}}'.encode()), Odd(302))


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_key_reaches_no_log_no_message_no_traceback_and_no_file(collector, caplog, capfd, tmp_path, pauses):
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("cool some mug", "fridge")
        for answer in (*_LEAKS, RIGHT[collector], None):
            with playing(in_turn(answer)) as platform:
                url = platform.url
                if answer is not None:
                    said += _tried(collector, url)
            if answer is None:  # it is gone
                said += _tried(collector, url)
    out = capfd.readouterr()
    everything = "\n".join(
        (*said, caplog.text, *map(repr, caplog.records), *map(str, caplog.messages), out.out, out.err)
    ).encode()
    everything += b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    pair = base64.b64encode(f"pk-lf-of-a-test:{SECRET}".encode())
    assert [one for one in (KEY.encode(), SECRET.encode(), pair) if one in everything] == []


def test_a_traceback_with_local_variables_has_no_key(monkeypatch, pauses):
    def shown(collector: Any, url: str) -> str:
        with pytest.raises((PlatformFailed, InvalidInput)) as caught:
            list(collector.collect(url=url))
        return "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())

    pair = base64.b64encode(f"pk-lf-of-a-test:{SECRET}".encode()).decode()
    for collector in COLLECTORS:
        with playing(in_turn(Odd(401))) as platform:
            said = shown(collector, "http://platform.example") + shown(collector, platform.url)
        assert [one for one in (KEY, SECRET, pair) if one in said] == []
    monkeypatch.setenv("LANGSMITH_API_KEY", f"{KEY}\nHost: evil")
    assert KEY not in shown(langsmith, "http://localhost:1")


def _tried(collector: Any, url: str) -> list[str]:
    said: list[str] = []
    try:
        said.append(repr(list(collector.collect(url=url))))
    except PlatformFailed as error:
        said += [repr(error), repr(vars(error)), *traceback.format_exception(error), repr((error.__cause__, error.__context__))]
    return said
