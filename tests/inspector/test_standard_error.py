"""An inspector whose standard error nobody reads goes on, and ends when it is told to."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="pipes have a fixed size")
def test_it_answers_with_a_full_pipe_and_ends(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("heat some cup", "microwave it")
    command = [sys.executable, "-m", "cascade_memory", "serve", "inspector", str(tmp_path / "memory"), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0, pipesize=4096)
    assert process.stderr is not None
    try:
        said = b""
        while (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", said)) is None and (more := process.stderr.read(1)):
            said += more
        assert found is not None, said
        address = ("127.0.0.1", int(found[1]))
        until = time.monotonic() + 20
        with socket.socket() as first:
            while first.connect_ex(address) and time.monotonic() < until:  # it listens a moment after it has said where
                time.sleep(0.05)
        for _ in range(300):  # each is a line
            with socket.create_connection(address, timeout=20) as one:
                one.sendall(b"no request\r\n\r\n")
                assert one.recv(100)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        assert len(process.stderr.read()) > 3_000, "its pipe was full"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
