"""Thousands of connections that begin a request and never end it: the server closes them, and answers everybody else."""

from __future__ import annotations

import contextlib
import gc
import http.client
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mcp")

from mcp_clients import call, served

from cascade_memory import CascadeMemory
from cascade_memory.serving.crowd import Crowd, room

HOW_MANY = 5_000
PROMPT = 3.0  # seconds; on an idle machine it takes hundredths, and who is kept out waits for ten or more
TOKEN = "a-token-of-some-length"
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
KINDS = {
    "nothing": b"",
    "half a head": HEAD,
    "half a line": b"GET /heal",
    "a head without its body": HEAD + b"Content-Length: 500\r\n\r\n",
    "a head with the token of nobody, without its body": HEAD + b"Authorization: Bearer x\r\nContent-Length: 500\r\n\r\n",
    "half a body": HEAD + b"Content-Length: 500\r\n\r\n{",
    "a body in pieces, without end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "a whole request, and half of the next one": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """The clients of these tests are one process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HOW_MANY + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may have {hard} descriptors here, and this needs {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True)
def no_socket_is_left() -> Iterator[None]:
    """One that is still open fails the test that left it open, and not a later one."""
    yield
    gc.collect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("heat some cup and put it in cabinet", "take cup, microwave it, open cabinet, put cup")
    return tmp_path / "memory"


@contextlib.contextmanager
def half_open(base: str, sent: Callable[[int], bytes], how_many: int = HOW_MANY) -> Iterator[list[socket.socket]]:
    """So many connections, each with what it was to send."""
    address = (urlsplit(base).hostname, urlsplit(base).port)
    opened: list[socket.socket] = []
    try:
        for number in range(how_many):
            one = socket.create_connection(address, timeout=20)
            opened.append(one)
            one.setblocking(False)
            push(one, sent(number))
        yield opened
    finally:
        for one in opened:
            one.close()


def push(one: socket.socket, data: bytes) -> bool:
    try:
        one.send(data)
    except OSError:  # the server has closed it
        return False
    return True


def is_closed(one: socket.socket) -> bool:
    try:
        while one.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def health(base: str) -> float:
    """Return how long the server took to say that it is well."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=10)
    try:
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    return time.perf_counter() - began


async def recalls(base: str) -> None:
    """An MCP client that has the token gets its cases."""
    import httpx
    from mcp import ClientSession
    from mcp.client import streamable_http

    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with contextlib.AsyncExitStack() as closing:
        if new := getattr(streamable_http, "streamable_http_client", None):
            own = httpx.AsyncClient(headers=headers)
            await closing.enter_async_context(own)  # the SDK does not close what it is given
            streams = await closing.enter_async_context(new(f"{base}/mcp", http_client=own))
        else:
            streams = await closing.enter_async_context(streamable_http.streamablehttp_client(f"{base}/mcp", headers=headers))
        session = await closing.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        assert len((await call(session, "recall_cases", query="heat some cup and put it in cabinet"))["cases"]) == 1


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def settles(looked: Callable[[], int], at: int, within: float) -> int:
    until = time.monotonic() + within
    while looked() > at and time.monotonic() < until:
        time.sleep(0.1)
    return looked()


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")


@pytest.mark.long
@needs_proc
async def test_thousands_of_half_open_connections_keep_nobody_out(folder: Path):
    with served(folder, CASCADE_MEMORY_TOKEN=TOKEN) as (base, process):
        await recalls(base)
        health(base)
        before = descriptors(process.pid)
        kinds = list(KINDS.values())
        with half_open(base, lambda number: kinds[number % len(kinds)]) as opened:
            assert len(opened) == HOW_MANY
            assert max(health(base) for _ in range(20)) < PROMPT
            await recalls(base)
            assert descriptors(process.pid) < before + 1_200
            stop = threading.Event()
            dripping = threading.Thread(target=drip, args=(opened, stop))
            dripping.start()
            try:
                slowest = 0.0
                for _ in range(30):  # 15 seconds: until long after every deadline for a head
                    slowest = max(slowest, health(base))
                    time.sleep(0.5)
                await recalls(base)
            finally:
                stop.set()
                dripping.join()
            assert slowest < PROMPT
        assert settles(lambda: descriptors(process.pid), before + 2, within=20) <= before + 2
        assert process.poll() is None


def drip(connections: list[socket.socket], stop: threading.Event) -> None:
    """A byte a second on every connection."""
    while not stop.wait(1.0):
        for one in connections:
            push(one, b"x")


@pytest.mark.long
@needs_proc
def test_who_keeps_a_connection_open_and_silent_or_slow_is_closed(folder: Path):
    with served(folder, CASCADE_MEMORY_TOKEN=TOKEN) as (base, process):
        health(base)
        before = descriptors(process.pid)
        kinds = list(KINDS.values())
        with half_open(base, lambda number: kinds[number % len(kinds)], how_many=3 * len(kinds)) as opened:
            stop = threading.Event()
            dripping = threading.Thread(target=drip, args=(opened[len(kinds) :], stop))
            dripping.start()
            try:
                assert settles(lambda: sum(not is_closed(one) for one in opened), 0, within=50) == 0
                assert settles(lambda: descriptors(process.pid), before + 1, within=10) <= before + 1
            finally:
                stop.set()
                dripping.join()
        health(base)


@pytest.mark.long
@needs_proc
def test_the_flood_may_be_faster_than_the_server(folder: Path):
    """Connections that come as fast as a process can make them, and go on coming, while health is asked for."""
    with served(folder) as (base, process):
        health(base)
        before = descriptors(process.pid)
        stop = threading.Event()
        address = (urlsplit(base).hostname, urlsplit(base).port)

        def flood() -> None:
            kept: list[socket.socket] = []
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    kept.append(socket.create_connection(address, timeout=5))
                if len(kept) > 2_000:
                    for one in kept[:1_000]:
                        one.close()
                    del kept[:1_000]
            for one in kept:
                one.close()

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            took = [health(base) for _ in range(30) if not time.sleep(0.1)]
        finally:
            stop.set()
            flooding.join()
        assert max(took) < 2
        assert settles(lambda: descriptors(process.pid), before + 2, within=20) <= before + 2


@pytest.mark.long
@needs_proc
def test_where_descriptors_run_out_nevertheless_the_server_waits_quietly_and_comes_back(folder: Path):
    with served(folder, CASCADE_MEMORY_TOKEN=TOKEN) as (base, process):
        health(base)
        few = descriptors(process.pid) + 50
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (few, few))
        with half_open(base, lambda _: HEAD, how_many=150):
            used = processor_seconds(process.pid)
            time.sleep(3)
            assert processor_seconds(process.pid) - used < 1.5, "it does not try without end"
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                health(base)
                break
        assert health(base) < PROMPT
        assert process.poll() is None
        process.terminate()
        said = process.communicate(timeout=20)[1]
        assert "Traceback" not in said
        assert said.count("no file descriptors are left for new connections") == 1


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Guest:
    def __init__(self) -> None:
        self.busy, self.left = False, False

    def leave(self) -> None:
        self.left = True


def test_the_stranger_that_came_first_goes_first():
    crowd, guests = Crowd(10), [Guest() for _ in range(13)]
    for guest in guests:
        crowd.enter(guest)
    assert [guest.left for guest in guests] == [True] * 3 + [False] * 10


def test_who_is_known_stays_while_strangers_come_and_go():
    crowd, friend = Crowd(10), Guest()
    crowd.enter(friend)
    assert crowd.vouch(friend)
    for _ in range(1_000):
        crowd.enter(Guest())
    assert not friend.left
    assert len(crowd) == 10


def test_known_ones_that_idle_leave_room_for_strangers():
    crowd, friends = Crowd(10), [Guest() for _ in range(10)]
    for friend in friends:
        crowd.enter(friend)
        crowd.vouch(friend)
    crowd.vouch(friends[0])  # it was used again
    strangers = [Guest() for _ in range(5)]
    for stranger in strangers:
        crowd.enter(stranger)
    assert [friend.left for friend in friends] == [False] + [True] * 5 + [False] * 4
    assert not any(stranger.left for stranger in strangers)


def test_requests_under_way_are_not_cut_off_and_take_half_of_the_room_at_most():
    crowd, friends = Crowd(10), [Guest() for _ in range(8)]
    let_in = []
    for friend in friends:
        crowd.enter(friend)
        let_in.append(crowd.vouch(friend))
        friend.busy = let_in[-1]
    assert let_in == [True] * 5 + [False] * 3
    for _ in range(100):
        crowd.enter(Guest())
    assert [friend.left for friend in friends[:5]] == [False] * 5


@pytest.mark.parametrize("soft", [64, 300, 1_024, 4_096])
def test_connections_leave_descriptors_for_the_memory(soft: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    connections, at_once = room()
    assert connections >= 2
    assert at_once >= 1
    assert connections + 4 * at_once <= max(soft, 16)
