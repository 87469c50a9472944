"""A server whose standard error nobody reads goes on, and ends when it is told to."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp_clients import command, served

from cascade_memory.cli.standard_error import Unhurried

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SMALL = 4096  # bytes; it is full before the lines of one minute are written
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def message(number: int, method: str, params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="pipes have a fixed size")
def test_over_http_it_answers_with_a_full_pipe_and_ends(folder: Path):
    with served(folder, "--rate", "0", pipesize=SMALL) as (base, process):
        address = urlsplit(base)
        for _ in range(80):
            with socket.create_connection((address.hostname, address.port), timeout=20) as one:
                one.sendall(b"no request\r\n\r\n")
                assert one.recv(100)
        connection = http.client.HTTPConnection(address.netloc, timeout=20)
        for number in range(80):
            connection.request("POST", "/mcp", body=message(number, "tools/call", {"name": ""}), headers=HEADERS)
            assert connection.getresponse().read()
        params = {"name": "recall_cases", "arguments": {"query": "heat some cup"}}
        connection.request("POST", "/mcp", body=message(81, "tools/call", params), headers=HEADERS)
        assert b"microwave" in connection.getresponse().read()
        connection.close()
        process.terminate()
        process.wait(timeout=20)
        assert process.stderr is not None
        said = process.stderr.read()
    assert 0.7 * SMALL < len(said) <= SMALL, "its pipe was full"
    assert "Invalid HTTP request" in said


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("told", ["end of input", "signal"])
def test_over_stdio_it_answers_with_a_full_pipe_and_ends(folder: Path, told: str):
    """With the level debug, what the SDK says of nonsense is logged whole: several times what the pipe holds."""
    asked = subprocess.Popen(
        command(folder, "--log-level", "debug"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert asked.stdin is not None
    assert asked.stdout is not None
    assert asked.stderr is not None
    try:
        asked.stdin.write(message(0, "initialize", HELLO) + b"\n")
        asked.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        for number in range(1, 100):
            asked.stdin.write(message(number, "nonsense", {}) + b"\n")
        asked.stdin.write(message(100, "tools/list", {}) + b"\n")
        asked.stdin.flush()
        assert any(json.loads(line).get("id") == 100 for line in asked.stdout)
        if told == "signal":
            asked.terminate()
        else:
            asked.stdin.close()
        assert asked.wait(timeout=20) == 0
        said = len(asked.stderr.read())
        assert said > 30_000 or not version("mcp").startswith("1."), f"{said}; the SDK of version 2 says little"
    finally:
        asked.kill()
        asked.wait()
        for stream in (asked.stdin, asked.stdout, asked.stderr):
            stream.close()


def test_nothing_is_lost_while_somebody_reads():
    reads, writes = os.pipe()
    with open(reads, "rb", closefd=True) as reader, open(writes, "wb", buffering=0) as writer:
        stream = io.TextIOWrapper(Unhurried(writer), encoding="utf-8", write_through=True)  # pyright: ignore[reportArgumentType]
        for number in range(50):
            print(f"line {number}", file=stream)
        assert stream.buffer.finish(10)  # pyright: ignore[reportAttributeAccessIssue]
        writer.close()
        assert reader.read().decode().splitlines() == [f"line {number}" for number in range(50)]


def all_said(stream: Unhurried, reader: io.BufferedReader, writer: io.FileIO) -> list[bytes]:
    """Begin to read, have one further line written, and return all lines."""
    said = b""
    while not stream.finish(0.01):
        said += reader.read1(65_536)
    stream.write(b"last\n")
    assert stream.finish(10)
    writer.close()
    return (said + reader.read()).splitlines()


def test_what_would_wait_for_too_long_is_left_out_and_the_reader_is_told():
    reads, writes = os.pipe()
    with open(reads, "rb", closefd=True) as reader, open(writes, "wb", buffering=0) as writer:
        stream = Unhurried(writer, most=400_000)
        stream.write(b"y" * 299_999 + b"\n")  # the pipe is full of it until somebody reads
        began = time.monotonic()
        for _ in range(1_000):
            assert stream.write(b"x" * 999 + b"\n") == 1_000
        assert not stream.finish(0.2)
        assert time.monotonic() - began < 5
        lines = all_said(stream, reader, writer)
    assert 90 <= sum(len(line) == 999 for line in lines) < 100
    assert sum(b"lines are left out here" in line for line in lines) == 1
    assert lines[-1] == b"last"
    assert b"lines are left out here" in lines[-2], "it stands where they were"


def test_a_line_is_left_out_whole():
    reads, writes = os.pipe()
    with open(reads, "rb", closefd=True) as reader, open(writes, "wb", buffering=0) as writer:
        stream = Unhurried(writer, most=400_000)
        stream.write(b"y" * 299_999 + b"\n")
        stream.write(b"z" * 300_000)  # it does not fit, and what follows would, once something was read
        stream.write(b"of a line")
        stream.write(b", and its end\n")
        lines = all_said(stream, reader, writer)
    assert not any(b"of a line" in line or b"its end" in line for line in lines)
    assert sum(b"lines are left out here" in line for line in lines) == 1
    assert lines[-1] == b"last"
    assert b"lines are left out here" in lines[-2]
