"""The process in which one script runs: it reads the script, sets its own limits, interprets the script, answers and ends."""

from __future__ import annotations

import datetime
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cascade_memory.evaluation.environments.sandbox.frames import Table
from cascade_memory.evaluation.environments.sandbox.functions import Scope
from cascade_memory.evaluation.environments.sandbox.names import Printed, ToolError, given_names
from cascade_memory.evaluation.environments.sandbox.statements import Interpreter, Refused, read_script
from cascade_memory.evaluation.environments.sandbox.walls import raise_walls

MOST_ANSWER, _MOST_ERROR = 10_000, 800
COLUMN = "column"  # the tool behind table["NAME"]; it has no name in the script
_PLAIN = (str, int, float, bool, type(None))


def main() -> None:
    """Run one script, whose text and limits come as a line of JSON."""
    request = json.loads(sys.stdin.buffer.readline())
    warnings.simplefilter("ignore")  # to show a warning about a script, Python would look for its file
    # Both load what they need when they are called: now, while files can still be opened.
    datetime.datetime.strptime("2000", "%Y").strftime("%Y")
    Counter("a").most_common(1)
    raise_walls(seconds=request["seconds"], megabytes=request["megabytes"])
    try:
        line = json.dumps(outcome(request["code"], request["tools"]))
    except MemoryError:
        line = '{"error": "the code needs too much memory"}'
    _write(line)
    os._exit(0)


def outcome(code: str, tools: Sequence[str]) -> dict[str, str]:
    """Run a script; return a dictionary with its "answer" or its "error". ``tools`` are the names of its tools."""
    printed, interpreter = Printed(), Interpreter()
    scope = Scope(given=given_names(printed, {name: partial(_use, name) for name in tools}))
    try:
        interpreter.run(read_script(code).body, scope)
        if "answer" not in scope.names:
            return {"error": "the code must store the answer of the question in the variable 'answer'"}
        answer = str(scope.names["answer"])
        if len(answer) > MOST_ANSWER:
            return {"error": f"the answer has {len(answer):,} characters; at most {MOST_ANSWER:,} are allowed"}
        return {"answer": answer}
    except MemoryError:
        return {"error": f"line {interpreter.line}: the code needs too much memory"}
    except RecursionError:
        return {"error": f"line {interpreter.line}: the code calls itself or nests too deeply"}
    except Refused as refused:
        return {"error": str(refused)}
    except SyntaxError as error:
        return {"error": f"line {error.lineno}: SyntaxError: {error.msg}"[:_MOST_ERROR]}
    except BaseException as error:  # noqa: BLE001 - whatever a script raises is its own error
        said = f"line {interpreter.line}: {type(error).__name__.lstrip('_')}: {error}"[:_MOST_ERROR]
        return {"error": f"{said}\nprinted before: {printed.text}" if printed.text else said}


def _use(name: str, /, *args: Any, **named: Any) -> Any:
    """Ask the parent process to use a tool. Keyword arguments are passed by position, in the order in which they stand."""
    _write(json.dumps({"call": name, "args": [_packed(one) for one in (*args, *named.values())]}))
    reply = json.loads(sys.stdin.buffer.readline())
    if "error" in reply:
        raise ToolError(reply["error"])
    return _unpacked(reply["value"])


def _packed(value: Any) -> Any:
    if isinstance(value, Table):
        if not value.is_whole:
            raise TypeError("tools take whole tables, not the rows that were chosen by a condition: choose them with FilterDB")
        return {"table": value.handle}
    if isinstance(value, list) and all(type(one) is str for one in value):
        return list(value)
    if type(value) not in _PLAIN:
        raise TypeError(f"tools take texts, numbers and tables, not {type(value).__name__}")
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(value["tuple"])
        column: Callable[[Table, str], list[Any]] = lambda table, name: _use(COLUMN, table, name)  # noqa: E731
        return Table(value["table"], value["columns"], value["rows"], column)
    return [_unpacked(one) for one in value] if isinstance(value, list) else value


def _write(line: str) -> None:
    rest = line.encode() + b"\n"
    while rest:
        rest = rest[os.write(1, rest) :]
