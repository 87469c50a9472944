"""Thousands of requests that make no sense: each gets an error, none a crash or a traceback, and the memory stays whole."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest
from intensity import times
from mcp_clients import command, served

from cascade_memory import CascadeMemory

pytestmark = pytest.mark.fuzz

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HOW_MANY = times(newcomer=40, ci=80, matrix=10_000)
TOOLS = ("recall_cases", "report_outcome", "add_case", "forget_cases", "memory_stats", "nothing_of_the_kind", "")


def nonsense(rng: random.Random, depth: int = 0) -> Any:
    kinds = [
        lambda: None,
        lambda: rng.choice([True, False]),
        lambda: rng.choice([-1, 0, 2**63, -(2**70), 1e308, 0.5]),
        lambda: rng.choice(
            ["", " ", "\x00", "\ud800", "x" * 50_000, "'; DROP TABLE cases; --", "../../etc/passwd", "🦙" * 100]
        ),
        lambda: "".join(chr(rng.randrange(1, 0xD7FF)) for _ in range(rng.randrange(20))),
    ]
    if depth < 3:
        kinds += [
            lambda: [nonsense(rng, depth + 1) for _ in range(rng.randrange(4))],
            lambda: {str(nonsense(rng, 9)): nonsense(rng, depth + 1) for _ in range(rng.randrange(4))},
        ]
    return rng.choice(kinds)()


def request(rng: random.Random) -> bytes:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return json.dumps(nonsense(rng)).encode()
    if kind == 2:
        return b"[" * rng.randrange(1, 5_000)
    if kind == 3:
        return json.dumps({"jsonrpc": "2.0", "id": nonsense(rng), "method": nonsense(rng), "params": nonsense(rng)}).encode()
    if kind == 4:
        uri = rng.choice(["cascade://cases/", "cascade://episodes/", "file:///", ""]) + str(nonsense(rng, 9))[:200]
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}).encode()
    names = ("query", "episode_id", "reward", "solution", "case_ids", "extra")
    arguments: Any = {name: nonsense(rng) for name in names if rng.random() < 0.6}
    if kind == 5:
        arguments = nonsense(rng)
    if kind == 6:  # the right types, and nothing behind them
        arguments = {"episode_id": str(rng.random()), "reward": rng.random(), "solution": "x", "case_ids": ["x"], "query": ""}
    params = {"name": rng.choice(TOOLS), "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": rng.randrange(100), "method": "tools/call", "params": params}).encode()


@pytest.mark.slow
@pytest.mark.timeout(max(300, HOW_MANY // 10))
def test_thousands_of_requests_over_http(folder):
    rng = random.Random(0)
    seen: dict[int, int] = {}
    with served(folder, "--rate", "0") as (base, process):
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
        for number in range(HOW_MANY):
            body = request(rng) if number % 1_000 else b"x" * 1_500_000
            headers = HEADERS if rng.random() < 0.95 else {"Content-Type": rng.choice(["text/plain", ""])}
            try:
                connection.request("POST", "/mcp", body=body, headers=headers)
                answer = connection.getresponse()
                text = answer.read().decode()
            except (http.client.HTTPException, ConnectionError):  # an oversized body may be cut off while it is sent
                assert len(body) > 1_000_000
                connection.close()
                continue
            seen[answer.status] = seen.get(answer.status, 0) + 1
            assert not any(sign in text for sign in ("Traceback", '.py", line')), body[:300]
            assert answer.status < 500, (answer.status, text[:300], body[:300])
        assert process.poll() is None
        connection.request("POST", "/mcp", body=ping(), headers=HEADERS)
        assert b"recall_cases" in connection.getresponse().read()
        connection.close()
    assert sum(seen.values()) > 0.99 * HOW_MANY
    with CascadeMemory(folder) as memory:
        assert all(check.ok for check in memory.data.examine())
        assert memory.stats().cases == 1, "nothing that was sent made or took a case"


@pytest.mark.slow
def test_a_thousand_lines_over_standard_input(folder):
    rng = random.Random(1)
    lines = [request(rng).replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(1_000)]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = [
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    sent = b"\n".join([*(json.dumps(one).encode() for one in first), *lines, ping()]) + b"\n"
    done = subprocess.run(command(folder), input=sent, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert b"Traceback" not in done.stdout
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["id"] == "hello"
    with CascadeMemory(folder) as memory:
        assert all(check.ok for check in memory.data.examine())


def ping() -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "last", "method": "tools/list"}).encode()
