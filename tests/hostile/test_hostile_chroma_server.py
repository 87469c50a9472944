"""A Chroma server says what it likes: nothing is run, nothing is believed that can be checked, and no recall waits or fails."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_mutations import CANARY, SCHEMA, SLOW, Canary, canary_known_to_chroma, twisted
from imitated_chroma import FRESH, Collection, Imitation, honest, imitated, raw
from inside import engine_of, state_of
from intensity import times

from cascade_memory import CascadeMemory
from cascade_memory.domain.case import Case
from cascade_memory.engine.mirror_projection import Mark
from cascade_memory.errors import StoreError
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.stores import bounded_http
from cascade_memory.stores.chroma_server import ChromaServer

HOW_MANY = times(newcomer=60, ci=200, matrix=4_000)
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300 + HOW_MANY)]
VECTOR = np.ones(384, np.float32) / np.sqrt(np.float32(384))
CASES = [Case(id=f"case-{i}", namespace="default", query=f"q{i}", solution="s") for i in range(40)]


@pytest.fixture
def server() -> Iterator[Imitation]:
    with imitated() as found:
        yield found


@pytest.fixture
def canary() -> Iterator[type[Canary]]:
    with canary_known_to_chroma() as found:
        yield found


@pytest.fixture
def mirror(server: Imitation) -> Iterator[ChromaServer]:
    found = ChromaServer(server.url, "0123456789ab", timeout=5.0)
    found.upsert("default", CASES, np.eye(40, 384, dtype=np.float32))
    found.prepare("default", VECTOR)
    yield found
    found.close()


VERBS: dict[str, Callable[[ChromaServer], object]] = {
    "upsert": lambda mirror: mirror.upsert("default", CASES[:3], np.eye(3, 384, dtype=np.float32)),
    "count": lambda mirror: mirror.count("default"),
    "delete": lambda mirror: mirror.delete("default", ["case-7"]),
    "query": lambda mirror: mirror.nearest_ids("default", VECTOR, 8),
    "prepare": lambda mirror: mirror.prepare("default", VECTOR),
    "drop": lambda mirror: mirror.drop("default"),
    "create": lambda mirror: mirror.collection("another"),
    "list": lambda mirror: mirror.discard(),
}


def test_whatever_a_server_answers_only_a_store_error_comes_of_it(
    server: Imitation, mirror: ChromaServer, canary: type[Canary]
):
    failed, messages = dict.fromkeys(VERBS, 0), list[str]()
    for seed in range(HOW_MANY):
        rng = random.Random(seed)
        server.twist = lambda _, right: honest(right)
        with contextlib.suppress(StoreError):
            mirror.collection("default")
            mirror.prepare("default", VECTOR)
            mirror.drop("another")
        verb = list(VERBS)[seed % len(VERBS)]
        server.twist = lambda _, right, rng=rng: twisted(right, rng)
        try:
            said = VERBS[verb](mirror)
        except StoreError as error:
            failed[verb] += 1
            messages.append(str(error))
        else:
            _check(verb, said, seed)
    assert all(message.isprintable() and len(message) < 600 for message in messages)
    assert all(count for verb, count in failed.items() if verb not in ("upsert", "delete")), failed
    assert canary.sung == 0


def _check(verb: str, said: Any, seed: int) -> None:
    if verb == "count":
        assert type(said) is int, seed
        assert said >= 0
    if verb == "query":
        assert isinstance(said, list), seed
        assert len(said) <= 8
        assert all(isinstance(one, str) for one in said)


@pytest.mark.parametrize("where", ["configuration_json", "schema", "both"])
def test_a_server_that_names_a_function_is_refused_and_nothing_is_built(
    server: Imitation, mirror: ChromaServer, canary: type[Canary], where: str
):
    (kept,) = server.collections.values()
    if where != "schema":
        kept.said["configuration_json"] = {**FRESH, "embedding_function": CANARY}
    if where != "configuration_json":
        kept.said["schema"] = SCHEMA
    mirror.close()
    for verb in ("upsert", "count", "delete", "prepare"):
        with pytest.raises(StoreError, match="names an embedding function"):
            VERBS[verb](mirror)
    mirror.discard()  # what rebuild does: it is deleted unread, and made anew
    VERBS["upsert"](mirror)
    assert mirror.count("default") == 3
    assert canary.sung == 0


@pytest.mark.parametrize("how", SLOW)
def test_an_answer_that_does_not_end_is_cut_off(server: Imitation, how: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.stores.chroma_server.ASKING", 0.3)
    mirror = ChromaServer(server.url, "0123456789ab", timeout=0.3)
    for more in (True, True, True, False):  # a busy machine may need longer than 0.3 s for an honest answer
        try:
            mirror.upsert("default", CASES, np.eye(40, 384, dtype=np.float32))
            mirror.prepare("default", VECTOR)
            break
        except StoreError:
            assert more
    server.twist = lambda *_: SLOW[how]()
    for verb in ("query", "count"):
        began = time.perf_counter()
        with pytest.raises(StoreError):
            VERBS[verb](mirror)
        assert time.perf_counter() - began < 2.5
    mirror.close()


def test_a_server_that_hangs_while_it_is_connected_to_is_given_up(server: Imitation):
    server.twist = lambda *_: SLOW["headers a byte at a time"]()
    began = time.perf_counter()
    with pytest.raises(StoreError, match="no Chroma server answers"):
        ChromaServer(server.url, "0123456789ab", timeout=0.3).open()
    assert time.perf_counter() - began < 2.5


def test_more_than_a_few_megabytes_are_not_read(server: Imitation, mirror: ChromaServer):
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"
        while sent < 10**9:
            sent += 2**18
            yield bytes(2**18)

    server.twist = lambda *_: endless()
    with pytest.raises(StoreError, match="more than 4,194,304 bytes"):
        mirror.count("default")
    assert sent < 20 * bounded_http.LARGEST


def test_an_error_that_cannot_even_be_written_down_is_one(server: Imitation, mirror: ChromaServer):
    deep = b"[" * 900 + b"]" * 900
    for body in (
        deep,
        b'{"error": "NotFoundError", "message": ' + deep + b"}",
        b'{"error": "AuthError", "message": "\\u001b[2J"}',
    ):
        for status in (200, 404, 500):
            server.twist = lambda *_, body=body, status=status: raw(body, status, "Connection: close")
            with pytest.raises(StoreError) as refused:
                mirror.count("default")
            assert str(refused.value).isprintable()


def test_a_redirect_is_not_followed(server: Imitation, mirror: ChromaServer):
    with imitated() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            server.twist = lambda *_, status=status: raw(b"{}", status, f"Location: {elsewhere.url}/api/v2/heartbeat")
            with pytest.raises(StoreError):
                mirror.count("default")
        assert elsewhere.asked == []


def test_collections_are_deleted_by_name_only_and_only_ours(server: Imitation, mirror: ChromaServer):
    names = ["ours-0123456789ab", "theirs-ba9876543210", "../../../../reset?-0123456789ab", "0123456789ab", 7, None]
    names += [f"more-{i}-0123456789ab" for i in range(150)]  # on the second page
    (kept,) = server.collections.values()
    for name in names:
        server.collections[str(name)] = Collection({**kept.said, "name": str(name)})
    mirror.discard()
    assert set(server.collections) == {"theirs-ba9876543210", "../../../../reset?-0123456789ab", "0123456789ab", "7", "None"}


# -- a whole memory -----------------------------------------------------------------------------------------------------


@pytest.fixture
def asking(server: Imitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CascadeMemory]:
    """A memory whose recalls ask the server; nothing happens in the background."""
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.INTERVAL", 3600.0)
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.WORTH_ASKING", 10)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="off", chroma=server.url) as memory:
        memory.add([(f"task {i} of kind {i * i}", f"solution {i}") for i in range(60)])
        memory.acting(namespace="a tenant").add([(f"theirs {i}", "secret") for i in range(60)])
        memory.forget([case.id for case in memory.cases.search("task 3 of kind 9", k=1).cases])
        for name in ("default", "a tenant"):
            state_of(memory, name).index.exact_limit = 10
        memory.sync()
        _ready(memory)
        yield memory
        server.twist = lambda _, right: honest(right)


def _ready(memory: CascadeMemory) -> None:
    """What the feeder does when it comes by and some time has gone by; again where a busy machine was too slow."""
    feeder = engine_of(memory).feeder
    assert feeder is not None
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        feeder.pace.not_before = 0.0
        with contextlib.suppress(StoreError):
            feeder.tick()
        if feeder.covered:
            return
        time.sleep(0.01)  # a look that took long on a busy machine is not repeated at once
    raise AssertionError(feeder.last_error)


@pytest.mark.slow
def test_no_answer_to_a_recall_makes_it_fail_or_shows_what_is_not_here(
    server: Imitation, asking: CascadeMemory, canary: type[Canary]
):
    ledger, number = engine_of(asking).parts.ledger, engine_of(asking).namespace_id("default")
    foreign = [case.id for case in asking.acting(namespace="a tenant").cases.search("theirs 1", k=60).cases]
    gone = ["00000000-0000-0000-0000-000000000000"] * 9
    refused = 0
    for seed in range(HOW_MANY):
        rng = random.Random(seed)

        def twist(verb: str, right: Any, rng: random.Random = rng) -> bytes:
            if verb == "query" and rng.random() < 0.2:
                ids = rng.sample([*foreign, *gone, *right["ids"][0]], len(right["ids"][0]))
                return raw(json.dumps({**right, "ids": [ids]}).encode(), 200, "Connection: close")
            return twisted(right, rng)

        server.twist = twist
        i = rng.choice([one for one in range(60) if one != 3])
        failures = engine_of(asking).feeder.failures  # type: ignore[union-attr]
        found = asking.cases.search(f"task {i} of kind {i * i}", k=5).cases
        assert len(found) == 5, seed
        assert len(ledger.cases.by_id([case.id for case in found], number)) == 5
        server.twist = lambda _, right: honest(right)
        if not engine_of(asking).parts.mirror.answers:  # type: ignore[union-attr] - it was refused
            refused += 1
            assert found[0].solution == f"solution {i}", seed
            engine_of(asking).feeder.tick()  # type: ignore[union-attr]
            assert engine_of(asking).feeder.failures == failures + 1, seed  # type: ignore[union-attr]
            assert asking.health().chroma == "failing"
            _ready(asking)
    assert refused > HOW_MANY / 4
    assert canary.sung == 0


def test_a_server_that_answers_with_cases_of_others_is_scanned_past(server: Imitation, asking: CascadeMemory):
    foreign = [case.id for case in asking.acting(namespace="a tenant").cases.search("theirs 1", k=60).cases]
    server.twist = lambda _, right: honest({**right, "ids": [foreign[:13]]})
    assert asking.cases.search("task 7 of kind 49", k=5).cases[0].solution == "solution 7"


@pytest.mark.slow
def test_whatever_happens_while_it_is_fed_the_ledger_answers_and_health_tells(
    server: Imitation, tmp_path: Path, canary: type[Canary], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.INTERVAL", 3600.0)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="off", chroma=server.url) as memory:
        for seed in range(max(15, HOW_MANY // 20)):
            rng = random.Random(seed)
            server.twist = lambda _, right, rng=rng: twisted(right, rng) if rng.random() < 0.5 else honest(right)
            memory.add(f"task {seed}", f"solution {seed}")
            engine_of(memory).feeder.pace.not_before = 0.0  # type: ignore[union-attr]
            failures = engine_of(memory).feeder.failures  # type: ignore[union-attr]
            with contextlib.suppress(StoreError):
                memory.sync()
            if engine_of(memory).feeder.failures > failures:  # type: ignore[union-attr]
                assert memory.health().failures["chroma"] > failures
            assert memory.cases.search(f"task {seed}").cases[0].solution == f"solution {seed}"
        assert memory.health().failures["chroma"]
        server.twist = lambda _, right: honest(right)
        memory.data.rebuild()
        assert memory.health().chroma == "clean"
        assert all(check.ok for check in memory.data.examine())
    assert canary.sung == 0


def test_collections_of_an_older_layout_are_deleted_and_fed_again(server: Imitation, tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="off", chroma=server.url) as memory:
        memory.acting(namespace="tenant/42").add("a", "b")
        memory.sync()
    (name,) = server.collections
    owner = name.rsplit("-", 1)[1]
    old = f"ns-tenant-42-48ccad1036ef-{owner}"
    server.collections[old] = server.collections.pop(name)
    server.collections[old].said["name"] = old
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    meta = f"mirror:{server.url}"
    mark = Mark.read(ledger.facts.get(meta))
    ledger.facts.set(meta, json.dumps({"key": mark.key, "seq": mark.seq, "clean": True}))
    ledger.close()
    with CascadeMemory(folder, embedder="hashing", learn="off", chroma=server.url) as memory:
        memory.sync()
        assert engine_of(memory).parts.mirror.count("tenant/42") == 1  # type: ignore[union-attr]
    assert list(server.collections) == [name]


def test_a_name_is_looked_up_once_and_no_recall_waits_for_that(server: Imitation, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    real = socket.getaddrinfo

    def looked_up(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "chroma.internal":
            asked.append(threading.current_thread().name)
            return real("127.0.0.1", *arguments, **options)
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    found = ChromaServer(server.url.replace("127.0.0.1", "chroma.internal"), "0123456789ab", timeout=5.0)
    found.upsert("default", CASES, np.eye(40, 384, dtype=np.float32))
    server.twist = lambda _, right: raw(json.dumps(right).encode(), 200, "Connection: close")  # as after a long silence
    found.prepare("default", VECTOR)
    known = len(asked)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *_, **__: time.sleep(30) if host == "chroma.internal" else real(host, *_, **__)
    )
    began = time.perf_counter()
    assert found.nearest_ids("default", VECTOR, 8)
    assert time.perf_counter() - began < 5
    assert known
    found.close()


def test_all_addresses_of_a_name_together_have_the_time_of_one(monkeypatch: pytest.MonkeyPatch):
    def many(host: str, port: int, *_: Any, **__: Any) -> Any:
        addresses = ["127.0.0.1"] if host.startswith("127.") else [f"10.255.255.{i}" for i in range(1, 7)]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    monkeypatch.setattr(bounded_http.socket, "getaddrinfo", many)
    client, _ = bounded_http.bounded_client({}, 1.0, tls=False)

    def swallow(_: Any, address: str, port: int, timeout: float, *__: Any) -> Any:
        time.sleep(timeout)
        raise bounded_http.httpcore.ConnectTimeout(address)

    monkeypatch.setattr(bounded_http.httpcore.SyncBackend, "connect_tcp", swallow)
    began = time.perf_counter()
    with client, pytest.raises((bounded_http.httpcore.ConnectTimeout, bounded_http.httpcore.ReadTimeout)):
        client.get("http://many.example")
    assert time.perf_counter() - began < 4.0


def test_a_command_that_knows_of_no_server_says_what_it_leaves_there(server: Imitation, tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", chroma=server.url) as memory:
        memory.add("a private task", "a secret", metadata={"user": "ann"})
        memory.sync()
    with CascadeMemory(folder, embedder="stored") as memory:  # as a command opens it
        memory.sync()
        assert (folder / "chroma").exists()
        receipt = memory.forget(where={"user": "ann"}, purge=True)
        assert not receipt.purged
        assert server.url in receipt.stale[-1]
    with CascadeMemory(folder, embedder="hashing", chroma=server.url) as memory:
        assert not (folder / "chroma").exists()
        memory.sync()
        receipt = memory.forget(purge=True)
        assert engine_of(memory).parts.mirror.count("default") == 0
