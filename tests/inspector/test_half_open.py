"""Connections that are opened and left silent: everybody else is answered."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

pytest.importorskip("uvicorn")

from cascade_memory import CascadeMemory
from cascade_memory.inspector import Inspector
from cascade_memory.serving import connection, crowd

_BEGUN = (b"", b"GET /cases HT", b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\ntok")


def is_closed(one: socket.socket) -> bool:
    one.settimeout(5)
    try:
        while one.recv(4_096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_connections_that_say_nothing_keep_nobody_out(memory: CascadeMemory, monkeypatch: Any):
    monkeypatch.setattr(crowd, "MOST", 60)
    with Inspector(memory) as inspector, httpx.Client(base_url=inspector.address) as person:
        person.get(inspector.link).raise_for_status()
        address = urlsplit(inspector.address)
        silent: list[socket.socket] = []
        try:
            for number in range(100):
                silent.append(socket.create_connection((address.hostname, address.port), timeout=5))
                with contextlib.suppress(OSError):  # the server may have closed it to make room
                    silent[-1].sendall(_BEGUN[number % len(_BEGUN)])
                time.sleep(0.005)  # few are accepted at once
            for _ in range(5):
                assert person.get("/cases").status_code == 200
                assert "mug" in httpx.get(f"{inspector.address}/cases", cookies=person.cookies).text
        finally:
            for one in silent:
                one.close()


def _never_reading(inspector: Inspector, request: bytes) -> socket.socket:
    """Ask again and again on one connection, and read no answer."""
    address = urlsplit(inspector.address)
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    one.settimeout(5)
    one.connect((address.hostname, address.port))
    one.sendall(request * 40)
    return one


def _hung_up(one: socket.socket) -> bool:
    """Wait until the server has closed a connection; nothing is read from it, so only sending tells."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            one.send(b"G")
        except TimeoutError:
            pass
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.long
def test_who_reads_no_answer_is_closed_and_others_are_answered(memory: CascadeMemory, monkeypatch: Any):
    """Half of the room may be answered at once: who never reads must not stay there."""
    monkeypatch.setattr(crowd, "MOST", 8)
    monkeypatch.setattr(connection, "READ_SECONDS", 1.0)
    long = memory.add("long", "x" * 400_000)
    with Inspector(memory) as inspector, httpx.Client(base_url=inspector.address) as person:
        person.get(inspector.link).raise_for_status()
        ((name, value),) = person.cookies.items()
        head = f"GET /case?id={long}&whole=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {name}={value}\r\n\r\n".encode()
        crowding = [_never_reading(inspector, head) for _ in range(6)]
        try:
            assert [_hung_up(one) for one in crowding] == [True] * 6
            assert person.get("/cases").status_code == 200
        finally:
            for one in crowding:
                one.close()


@pytest.mark.parametrize("sent", ["a huge head", "a huge body", "a body without end", "many heads"])
def test_what_is_too_large_is_not_taken_and_keeps_nobody_out(memory: CascadeMemory, monkeypatch: Any, sent: str):
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.5)
    head = b"POST /do/pin HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    parts = {
        "a huge head": [b"GET /cases HTTP/1.1\r\nX: ", *([b"x" * 2**16] * 64)],
        "a huge body": [head + b"Content-Length: 99999999999\r\n\r\n", *([b"x" * 2**16] * 200)],
        "a body without end": [head + b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 20)],
        "many heads": [b"GET /cases HTTP/1.1\r\n", *([b"A: b\r\n" * 1_000] * 100)],
    }
    with Inspector(memory) as inspector, httpx.Client(base_url=inspector.address) as person:
        person.get(inspector.link).raise_for_status()
        address = urlsplit(inspector.address)
        with socket.create_connection((address.hostname, address.port), timeout=1) as one:
            with contextlib.suppress(OSError):  # it is closed while we still send
                for part in parts[sent]:
                    one.sendall(part)
            assert person.get("/cases").status_code == 200
            assert is_closed(one)


def test_it_ends_although_clients_neither_send_nor_read(memory: CascadeMemory):
    long = memory.add("long", "x" * 400_000)
    inspector = Inspector(memory)
    with httpx.Client(base_url=inspector.address) as person:
        person.get(inspector.link).raise_for_status()
        ((name, value),) = person.cookies.items()
    head = f"GET /case?id={long}&whole=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {name}={value}\r\n\r\n".encode()
    address = urlsplit(inspector.address)
    others = [_never_reading(inspector, head) for _ in range(4)]
    for begun in _BEGUN:
        others.append(socket.create_connection((address.hostname, address.port), timeout=5))
        others[-1].sendall(begun)
    began = time.monotonic()
    inspector.close()
    assert time.monotonic() - began < 15  # two seconds of grace, on an idle machine
    for one in others:
        one.close()


def test_a_request_that_does_not_arrive_is_given_up(memory: CascadeMemory, monkeypatch: Any):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.3)
    with Inspector(memory) as inspector:
        address = urlsplit(inspector.address)
        began = time.monotonic()
        for begun in _BEGUN:
            with socket.create_connection((address.hostname, address.port)) as one:
                one.sendall(begun)
                assert is_closed(one), begun
        assert time.monotonic() - began < 10
