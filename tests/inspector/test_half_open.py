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
