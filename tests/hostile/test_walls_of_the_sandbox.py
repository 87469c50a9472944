"""The second wall: even real Python, behind the limits that the system sets, gets nowhere."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascade_memory.evaluation.environments import sandbox

HERE = Path(sandbox.__file__).parent
# Loads the walls as the process of a script does, raises some of them, and then runs Python that tries to get out.
BEGIN = """
import sys
sys.argv = [{start!r}]
import runpy
about = runpy.run_path({start!r})
import importlib, os, socket, ctypes, resource, time, signal
from types import ModuleType
from pathlib import Path
names = about["_HERE"].split(".")
for depth in range(1, len(names) + 1):
    package = ModuleType(".".join(names[:depth]))
    package.__path__ = [str(Path({start!r}).resolve().parents[len(names) - depth])]
    sys.modules[package.__name__] = package
walls = importlib.import_module(about["_HERE"] + ".walls")
"""
TRIES = {
    "read a file": "open('/etc/hostname').read()",
    "write a file": "open('CANARY', 'w').write('x')",
    "open without Python's open": "os.open('CANARY', os.O_WRONLY | os.O_CREAT)",
    "list a folder": "os.listdir('/')",
    "a socket": "socket.socket().connect(('127.0.0.1', 9))",
    "fork": "os.fork() or os._exit(0)",
    "a program": "os.execv('/bin/true', ['true'])",
    "a program in a new process": "os.posix_spawn('/bin/true', ['true'], {})",
    "kill the parent": "os.kill(os.getppid(), signal.SIGCONT)",
    "duplicate a descriptor": "os.dup(1)",
    "a pipe": "os.pipe()",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))",
    "change the folder": "os.chdir('/tmp')",
    "remove a file": "os.remove('CANARY')",
}
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the filter of system calls is Linux's")


def run(code: str) -> subprocess.CompletedProcess[str]:
    begin = BEGIN.format(start=str(HERE / "start.py"))
    return subprocess.run([sys.executable, "-I", "-S", "-c", begin + code], capture_output=True, text=True, timeout=30)


def tried(what: str, raise_walls: str) -> str:
    code = f"{raise_walls}\ntry:\n    {what}\nexcept BaseException as error:\n    os.write(1, f'refused: {{error}}'.encode())\n"
    return run(code + "else:\n    os.write(1, b'out')\nos._exit(0)\n").stdout


@pytest.mark.parametrize("name", list(TRIES))
def test_all_walls_together_refuse(name, tmp_path):
    file = tmp_path / "canary"
    file.write_text("alive")
    said = tried(TRIES[name].replace("CANARY", str(file)), "walls.raise_walls(seconds=5, megabytes=512)")
    assert said.startswith("refused")
    assert file.read_text() == "alive"


@linux
@pytest.mark.parametrize("name", list(TRIES))
def test_the_filter_of_system_calls_alone_refuses(name, tmp_path):
    file = tmp_path / "canary"
    file.write_text("alive")
    said = tried(TRIES[name].replace("CANARY", str(file)), "assert walls.forbid_system_calls()")
    assert said.startswith("refused: [Errno 1]") or "not allowed to raise" in said
    assert file.read_text() == "alive"


@pytest.mark.slow
def test_memory_and_time_are_limited_by_the_system():
    standing = "standing = walls.raise_walls(seconds=1, megabytes=300)\n"
    said = run(standing + "try:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    os.write(1, b'no memory')\nos._exit(0)")
    assert said.stdout == "no memory"
    began = time.monotonic()
    assert run(standing + "while True: pass").returncode != 0
    assert time.monotonic() - began < 20
    named = run(standing + "os.write(1, ' '.join(standing).encode())\nos._exit(0)").stdout.split()
    assert {"RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "audit"} <= set(named)


def test_this_process_keeps_its_own_limits():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    from cascade_memory.evaluation.environments.sandbox.sandbox import Sandbox

    assert Sandbox().run("answer = 1", {}).succeeded
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
