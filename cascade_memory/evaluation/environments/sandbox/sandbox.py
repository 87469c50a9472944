"""Runs one untrusted script: starts its process, answers its calls of tools, and kills it when it takes too long."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from cascade_memory import clean_text
from cascade_memory.evaluation.environments.sandbox.child import COLUMN, MOST_ANSWER

_MOST_LINE, _MOST_CALLS, _MOST_SAID = 200_000, 500, 20_000
Tools: TypeAlias = Mapping[str, Callable[..., Any]]


class ToolFailed(Exception):
    """A tool refuses what a script asked for; the script gets the message as an error."""


@dataclass(frozen=True, slots=True)
class TableHandle:
    """What a script gets of a table: a number, the names of the columns and the number of rows."""

    number: int
    columns: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a script: its answer, or the sentence that says why there is none."""

    succeeded: bool
    text: str


class Sandbox:
    """Runs scripts in a small part of Python, each in a new process without access to files, network or further processes.

    A script stores its result in the variable ``answer``. Tools run in the calling process, so they must check their arguments.

    >>> Sandbox().run("answer = double(21)", {"double": lambda n: 2 * n})
    Ran(succeeded=True, text='42')
    >>> Sandbox().run("answer = open('/etc/passwd')", {})
    Ran(succeeded=False, text="line 1: NameError: name 'open' is not defined here")
    """

    def __init__(self, *, seconds: float = 20.0, megabytes: int = 512) -> None:
        self._seconds, self._megabytes = seconds, megabytes

    def run(self, code: str, tools: Tools) -> Ran:
        """Run a script that may call these tools by their names; return its answer, or why there is none."""
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("start.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={} if os.name == "posix" else None,
            cwd=os.path.abspath(os.sep),
            start_new_session=True,
        )
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(self._seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return self._talk(process, code, tools)
        except (BrokenPipeError, EOFError, ConnectionResetError):
            if late.is_set():
                return Ran(False, f"the code took longer than {self._seconds:g} seconds")
            return Ran(False, "the code crashed its process, most likely by using too much memory or time")
        finally:
            timer.cancel()
            timer.join()  # from here on nobody else kills, so the process may be waited for
            _kill(process)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    cast("Any", pipe).close()
            process.wait()

    def _talk(self, process: subprocess.Popen[bytes], code: str, tools: Tools) -> Ran:
        limits = {"seconds": self._seconds, "megabytes": self._megabytes}
        _send(process, {"code": code, "tools": [name for name in tools if name != COLUMN], **limits})
        for _ in range(_MOST_CALLS + 1):
            said = _received(process)
            if "call" in said:
                _send(process, _used(said, tools))
            elif isinstance(found := said.get("answer"), str) and len(found) <= MOST_ANSWER:
                return Ran(True, clean_text(found))
            else:
                return Ran(False, clean_text(str(said.get("error", "the code gave no answer")))[:_MOST_SAID])
        return Ran(False, f"the code called tools more than {_MOST_CALLS} times")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process with everything in its session, unless it is known to have ended.

    No other process can have its id, because nobody has waited for the process yet.
    """
    if process.returncode is not None:
        return
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _send(process: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _received(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Read one message; raise ``EOFError``, as after a crash, if it is none: the script may have taken over the process."""
    assert process.stdout is not None
    line = process.stdout.readline(_MOST_LINE)
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise EOFError from None
    if not line.endswith(b"\n") or not isinstance(said, dict):
        raise EOFError
    return cast("dict[str, Any]", said)


def _used(said: Mapping[str, Any], tools: Tools) -> dict[str, Any]:
    """Use the tool that a message of the script names, and return the value or the error for the script."""
    tool, args = tools.get(str(said["call"])), said.get("args")
    if tool is None or not isinstance(args, list):
        return {"error": "there is no such tool"}
    given = [_handle(one) for one in cast("list[Any]", args)]
    try:
        inspect.signature(tool).bind(*given)
    except TypeError as error:
        return {"error": f"{said['call']}: {error}"}
    try:
        return {"value": _packed(tool(*given))}
    except ToolFailed as failed:
        return {"error": str(failed)}


def _handle(value: Any) -> Any:
    if isinstance(value, dict):
        number = cast("dict[str, Any]", value).get("table")
        return TableHandle(number if isinstance(number, int) else -1)
    return value


def _packed(value: Any) -> Any:
    if isinstance(value, TableHandle):
        return {"table": value.number, "columns": value.columns, "rows": value.rows}
    if isinstance(value, tuple):
        return {"tuple": [_packed(one) for one in cast("tuple[Any, ...]", value)]}
    return [_packed(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
