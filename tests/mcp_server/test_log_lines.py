"""What a server logs of requests that make no sense: few short lines, without what a client has sent."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp_clients import served

from cascade_memory.cli.standard_error import FewLines, ShortLines

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def record(name: str, message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "here.py", 1, message, args, None)


def test_a_line_of_another_library_is_one_short_line():
    said = ShortLines("%(name)s: %(message)s").format(record("root", "invalid: %s\nthe card\u202e of Ann", "x" * 500))
    assert said == f"root: invalid: {'x' * 150}…"
    own = "cascade_memory.engine"
    assert ShortLines("%(message)s").format(record(own, "a\nb %s", "c" * 500)) == f"a\n  b {'c' * 500}"


def test_control_characters_and_invisible_ones_are_written_out():
    said = "\x1b[2J\rall is well\x9b\u2028\u202e\x00"
    written = "<U+001B>[2J<U+000D>all is well<U+009B><U+2028><U+202E><U+0000>"
    assert ShortLines("%(message)s").format(record("root", said)) == written
    assert ShortLines("%(message)s").format(record("cascade_memory.engine", f"a\n\tb {said}")) == f"a\n  \tb {written}"
    long = ShortLines("%(message)s").format(record("root", "\x1b" * 500))
    assert len(long) == 160
    assert "\x1b" not in long


def test_an_exception_of_another_library_is_named_and_not_quoted():
    one = record("mcp.server", "it failed")
    one.exc_info = (ValueError, ValueError("the card of Ann"), None)
    assert ShortLines("%(message)s").format(one) == "it failed (ValueError)"


def test_a_minute_has_so_many_lines_of_others_and_all_of_its_own():
    few = FewLines(most=3)
    records = [record("mcp.server.lowlevel", f"line {number}") for number in range(9)]
    written = [one.getMessage() for one in records if few.filter(one)]
    assert written == ["line 0", "line 1", "many such lines: further ones are left out for up to a minute"]
    assert all(few.filter(record("cascade_memory.engine", "a recall")) for _ in range(9))


def test_a_flood_hides_no_lines_of_another_logger_and_no_errors():
    few = FewLines(most=3)
    for number in range(100):
        few.filter(record("root", f"invalid {number}"))
    failed = record("root", "the server failed")
    failed.levelno = logging.ERROR
    for other in (record("chromadb", "the disk is full"), failed):
        said = other.getMessage()
        assert few.filter(other)
        assert other.getMessage() == said


@pytest.mark.long
def test_two_hundred_messages_that_make_no_sense_are_few_lines_without_their_text(folder: Path):
    with served(folder, "--rate", "0") as (base, process):
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
        for number in range(200):
            params = {"name": "", "arguments": "the card of Ann", "number": number}
            body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            connection.request("POST", "/mcp", body=body, headers=HEADERS)
            assert connection.getresponse().read()
        connection.close()
        process.terminate()
        said = process.communicate(timeout=20)[1]
    assert "the card of Ann" not in said
    assert "arguments" not in said
    lines = [line for line in said.splitlines() if " WARNING " in line]
    assert len(lines) <= 70
    assert lines or not version("mcp").startswith("1."), "the SDK of version 2 says nothing"
    assert max(map(len, lines), default=0) < 300


@pytest.mark.slow
def test_what_is_no_http_is_logged_as_seldom(folder: Path):
    with served(folder, "--rate", "0") as (base, process):
        address = urlsplit(base)
        for _ in range(150):
            with socket.create_connection((address.hostname, address.port), timeout=30) as one:
                one.sendall(b"the card of Ann\r\n\r\n")
                assert one.recv(100)
        process.terminate()
        lines = [line for line in process.communicate(timeout=20)[1].splitlines() if "Invalid HTTP" in line]
    assert 1 <= len(lines) <= 70
    assert all(" WARNING uvicorn" in line for line in lines)
