"""Hostile scripts: each ends within its limits and with a sentence, nothing gets out, and the next script still works."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_memory.evaluation.environments.hospital.rounds import Records
from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran

SECONDS = 2.0
CANARY = "the canary is yellow"
HONEST = "answer = GetValue(FilterDB(LoadDB('d_labitems'), 'LABEL=sodium'), 'LABEL')"

# Each with a part of the sentence that it must end with. FILE and PORT stand for the canary's file and the socket's port.
REFUSED = {
    "open a file": ("answer = open('FILE').read()", "'open' is not defined"),
    "write a file": ("open('FILE', 'w').write('x')\nanswer = 1", "'open' is not defined"),
    "import os": ("import os\nanswer = os.listdir('/')", "'os' cannot be imported"),
    "import sys under another name": ("import sys as s\nanswer = s.modules", "'sys' cannot be imported"),
    "import from os": ("from os import path\nanswer = path", "'os' cannot be imported"),
    "import relatively": ("from . import child\nanswer = child", "cannot be imported"),
    "import everything": ("from math import *\nanswer = pi", "'*' cannot be imported"),
    "import a part of a package": ("import os.path\nanswer = 1", "'os.path' cannot be imported"),
    "import by the function": ("answer = __import__('os').getpid()", 'names that begin with "__"'),
    "a module inside a module": ("import re\nanswer = re.enum.sys.modules", "re.enum cannot be used"),
    "a module inside statistics": ("import statistics\nanswer = statistics.sys", "statistics.sys cannot be used"),
    "a network": ("import socket\nanswer = socket.create_connection(('127.0.0.1', PORT))", "'socket' cannot be imported"),
    "a web page": ("import urllib.request\nanswer = 1", "'urllib.request' cannot be imported"),
    "a process": ("import subprocess\nanswer = subprocess.run(['touch', 'FILE'])", "'subprocess' cannot be imported"),
    "a thread": ("import threading\nanswer = 1", "'threading' cannot be imported"),
    "ctypes": ("import ctypes\nanswer = ctypes.CDLL(None)", "'ctypes' cannot be imported"),
    "a signal": ("import signal\nanswer = signal.alarm(0)", "'signal' cannot be imported"),
    "close descriptors": ("import os\nos.closerange(0, 9)\nanswer = 1", "'os' cannot be imported"),
    "eval": ("answer = eval('1 + 1')", "'eval' is not defined"),
    "exec": ("exec('answer = 1')\nanswer = 1", "'exec' is not defined"),
    "compile": ("answer = compile('1', '', 'eval')", "'compile' is not defined"),
    "getattr": ("answer = getattr('', '__class__')", "'getattr' is not defined"),
    "type": ("answer = type('')", "'type' is not defined"),
    "vars": ("answer = vars()", "'vars' is not defined"),
    "globals": ("answer = globals()", "'globals' is not defined"),
    "object": ("answer = object.__subclasses__()", 'names that begin with "__"'),
    "input": ("answer = input()", "'input' is not defined"),
    "class hierarchy": ("answer = ().__class__.__base__.__subclasses__()", 'names that begin with "__"'),
    "class by mro": ("answer = str.mro()", "a type has no attribute 'mro'"),
    "a class of its own": ("class A: pass\nanswer = A()", "ClassDef cannot be used"),
    "decorator": ("@print\ndef f(): pass\nanswer = 1", "decorators cannot be used"),
    "frame of a generator": ("g = (x for x in [1])\nanswer = g.gi_frame.f_globals", "no attribute 'gi_frame'"),
    "a generator of its own": ("def g():\n    yield 1\nanswer = g().gi_frame", "Yield cannot be used"),
    "frame of a coroutine": ("async def f(): pass\nanswer = f().cr_frame", "AsyncFunctionDef cannot be used"),
    "globals of a function": ("def f(): pass\nanswer = f.__globals__", 'names that begin with "__"'),
    "code of a function": ("f = lambda: 1\nanswer = f.func_code", "no attribute 'func_code'"),
    "inside a function of ours": ("f = lambda: 1\nanswer = f._closure", 'attributes that begin with "_"'),
    "the object behind a method": ("answer = [].append.__self__", 'names that begin with "__"'),
    "the function behind a tool": ("answer = LoadDB.func", "no attribute 'func'"),
    "traceback": ("try:\n    1 / 0\nexcept Exception as e:\n    answer = e.__traceback__", 'names that begin with "__"'),
    "frame of a traceback": ("try:\n    1 / 0\nexcept Exception as e:\n    answer = e.tb_frame", "no attribute 'tb_frame'"),
    "the error itself": ("try:\n    1 / 0\nexcept Exception as e:\n    answer = e.error", "no attribute 'error'"),
    "catch everything": ("try:\n    1 / 0\nexcept BaseException:\n    answer = 1", "'BaseException' is not defined"),
    "format with an attribute": ("answer = '{0.__class__}'.format(1)", "a field of format must be"),
    "format with an item": ("answer = '{0[0]}'.format([1])", "a field of format must be"),
    "nested format": ("answer = '{:{0.real}}'.format(1)", "a field of format must be"),
    "format_map": ("answer = '{a.b}'.format_map({'a': 1})", "no attribute 'format_map'"),
    "format of the type": ("answer = str.format('{0.__class__}', 1)", "a type has no attribute 'format'"),
    "f-string with an attribute": ("answer = f'{(1).__class__}'", 'names that begin with "__"'),
    "set an attribute": ("f = lambda: 1\nf.name = 2\nanswer = 1", "no attributes"),
    "change a tool": ("LoadDB.func = print\nanswer = 1", "no attributes"),
    "change a module": ("import math\nmath.pi = 3\nanswer = 1", "no attributes"),
    "change a type": ("str.upper = 1\nanswer = 1", "no attributes"),
    "delete an attribute": ("import math\ndel math.pi\nanswer = 1", "only names and items can be deleted"),
    "a hidden keyword": ("answer = dict(**{'__class__': 1})", 'must not begin with "_"'),
    "bytes": ("answer = b'x'", "constant of type bytes"),
    "match statement": ("match 1:\n    case int(real=x): answer = x", "cannot be used here"),
    "with statement": ("with LoadDB('patients') as x: answer = 1", "With cannot be used"),
    "null byte": ("answer = 1\x00", "null bytes"),
    "no code": ("I cannot answer this.", "SyntaxError"),
    "no answer": ("x = 1", "in the variable 'answer'"),
    "huge source": ("answer = '" + "x" * 50_000 + "'", "characters; at most"),
    "many parts": ("answer = [" + "-1," * 6_000 + "]", "too long"),
    "deep brackets": ("answer = " + "(" * 9_000 + "1" + ")" * 9_000, "SyntaxError"),
    "deep signs": ("answer = " + "-" * 500 + "1", "nested too deeply"),
    "deep additions": ("answer = " + "1 + " * 3_000 + "1", "nested too deeply"),
    "huge power": ("answer = 9 ** 9 ** 9", "too large"),
    "huge power by pow": ("answer = pow(9, 9 ** 9)", "too large"),
    "huge shift": ("answer = 1 << 10 ** 9", "too large"),
    "huge factorial": ("import math\nanswer = math.factorial(10 ** 9)", "takes numbers up to"),
    "huge text": ("answer = 'x' * 10 ** 12", "too many items"),
    "huge answer": ("answer = ['x' * 1000] * 1000", "the answer has"),
    "huge padding": ("answer = f'{1:>2000000000}'", "too much memory"),
    "huge padding by percent": ("answer = '%2000000000d' % 1", "too much memory"),
    "huge digits": ("answer = str(7 ** 30000)", "ValueError"),
    "list of everything": ("answer = list(range(10 ** 11))", "too much memory"),
    "recursion": ("def f(n): return f(n + 1)\nanswer = f(0)", "calls itself"),
    "recursion by sorting": ("def f(n): return sorted([n], key=f)\nanswer = f(0)", "calls itself"),
    "raise something else": ("raise 'out'", "only errors can be raised"),
    "raise an exit": ("raise SystemExit", "'SystemExit' is not defined"),
    "a number for a table": ("answer = GetValue(0, 'DOB')", "needs a table from LoadDB"),
    "a list for a tool": ("answer = LoadDB(['patients'])", "LoadDB needs the name of a table, not a value of type list"),
    "a list in a list for a tool": ("answer = LoadDB([['patients']])", "tools take texts, numbers and tables"),
    "a function for a tool": ("answer = SQLInterpreter(lambda: 1)", "tools take texts, numbers and tables"),
    "the inner tool": ("answer = column(LoadDB('patients'), 'DOB')", "'column' is not defined"),
    "a table of the system": ("answer = LoadDB('sqlite_master')", "there is no table 'sqlite_master'"),
    "SQL in a table's name": ("answer = LoadDB('patients\" --')", "there is no table"),
    "SQL in a column's name": ("answer = GetValue(LoadDB('patients'), 'DOB\" FROM patients --')", "has no column"),
    "SQL in a condition": ("answer = FilterDB(LoadDB('patients'), 'DOB\") OR 1=1 --')", "cannot be read"),
    "SQL in a value": ("answer = FilterDB(LoadDB('patients'), \"DOB=x' OR '1'='1\")", "has no value"),
    "SQL in a duration": ("answer = Calendar(\"0 year') FROM patients --\")", "cannot read the duration"),
    "SQL that writes": ("answer = SQLInterpreter(\"DELETE FROM patients\")", "SQLInterpreter"),
    "SQL that makes a table": ("answer = SQLInterpreter('CREATE TABLE x (y)')", "not authorized"),
    "SQL that attaches": ("answer = SQLInterpreter(\"ATTACH 'FILE' AS x\")", "not authorized"),
    "SQL that copies": ("answer = SQLInterpreter(\"VACUUM INTO 'FILE.copy'\")", "SQLInterpreter"),
    "SQL that loads a library": ("answer = SQLInterpreter(\"SELECT load_extension('FILE')\")", "not authorized"),
    "SQL that changes settings": ("answer = SQLInterpreter('PRAGMA journal_mode = DELETE')", "not authorized"),
    "two statements": ("answer = SQLInterpreter('SELECT 1; DELETE FROM patients')", "SQLInterpreter"),
    "many rows": ("answer = SQLInterpreter('SELECT a.ROW_ID FROM labevents a, labevents b')", "more than 1,000 rows"),
    "many calls of tools": ("for n in range(10 ** 9):\n    Calendar('0 year')\nanswer = 1", "tools more than"),
    "many tables": ("for n in range(99):\n    LoadDB('patients')\nanswer = 1", "more than 60 tables"),
    "a formula with names": ("answer = Calculate('open(1)')", "only numbers and operators"),
    "a formula that is no number": ("answer = Calculate('(-1) ** 0.5')", "no real number"),
    "a formula with too many digits": ("answer = Calculate('9 ** 9000')", "too large"),
    "a condition of spaces": ("answer = FilterDB(LoadDB('patients'), 'DOB=x' + ' ' * 90000 + 'y')", "has no value"),
    "a list of spaces": ("answer = len(FilterDB(LoadDB('patients'), 'DOB in' + ' ' * 90000 + '[')) + x", "'x' is not defined"),
    "a long value": ("answer = FilterDB(LoadDB('patients'), 'DOB=' + 'x1' * 40000)", "has no value"),
    "a value of surrogates": ("answer = FilterDB(LoadDB('patients'), 'DOB=' + chr(55296))", "surrogates are not allowed"),
    "an answer of surrogates and control characters": ("answer = 1 / 0 if chr(55296) + chr(0) else 1", "ZeroDivisionError"),
    "a huge formula": ("answer = Calculate('9 ** 9 ** 9')", "too large"),
}  # fmt: skip
# These end by a limit: that on time, or that on memory, whichever comes first.
UNBOUNDED = {
    "memory": "x = []\nwhile True:\n    x.append('y' * 1000000 + str(len(x)))",
    "doubling": "x = [1]\nwhile True:\n    x = x + x",
    "endless loop": "while True: pass",
    "endless loop that catches": "while True:\n    try:\n        1 / 0\n    except Exception:\n        pass",
    "endless end": "try:\n    1 / 0\nfinally:\n    while True: pass",
    "endless sum": "answer = sum(range(10 ** 14))",
    "endless search": "answer = -1 in range(10 ** 14) or 'x' in map(str, range(10 ** 14))",
    "endless pattern": "import re\nanswer = re.match('(a+)+$', 'a' * 40 + 'b')",
    "endless SQL": "answer = SQLInterpreter('WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT 1 FROM a) '\n"
    "                        'SELECT sum(x) FROM a')",
    "endless join in SQL": "answer = SQLInterpreter('SELECT sum(a.ROW_ID) FROM labevents a, labevents b, labevents c')",
}


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("canary") / "canary.txt"
    file.write_text(CANARY)
    return file


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_hospital(tmp_path_factory.mktemp("hospital") / "hospital.sqlite", patients=30)


@pytest.fixture(scope="module")
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def records(database: Path) -> Iterator[Records]:
    with Records(database, seconds=SECONDS) as records:
        records.run(HONEST)  # starts the process for queries
        yield records


@pytest.fixture(scope="module")
def patient(database: Path) -> Iterator[Records]:
    """For scripts that end by themselves, on a busy machine too."""
    with Records(database, seconds=5 * SECONDS) as records:
        records.run(HONEST)
        yield records


def children() -> set[int]:
    """Return the processes that this one started, and those that no longer have a parent of their own and run scripts."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, parent = entry.read_text().rsplit(")", 1)[0], entry.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(name.split(" ", 1)[0]))
    return found


def run_hostile(records: Records, code: str, canary: Path, database: Path, listening: socket.socket) -> Ran:
    code = code.replace("FILE", str(canary)).replace("PORT", str(listening.getsockname()[1]))
    before, data = children(), database.read_bytes()
    began = time.monotonic()
    ran = records.run(code)
    assert time.monotonic() - began < 3 * SECONDS + 3
    assert len(children() - before) <= 1  # the process for queries may have been started anew
    assert canary.read_text() == CANARY
    assert CANARY not in ran.text
    assert [file.name for file in canary.parent.iterdir()] == [canary.name]
    assert database.read_bytes() == data
    assert [file.name for file in database.parent.iterdir()] == [database.name]
    with pytest.raises(BlockingIOError):
        listening.accept()
    assert records.run(HONEST) == Ran(True, "sodium")
    return ran


def test_there_are_enough_of_them():
    assert len(REFUSED) + len(UNBOUNDED) >= 100


@pytest.mark.parametrize("name", list(REFUSED))
def test_it_is_refused_with_a_sentence_and_nothing_gets_out(name, patient, canary, database, listening):
    code, sentence = REFUSED[name]
    ran = run_hostile(patient, code, canary, database, listening)
    assert not ran.succeeded
    assert sentence in ran.text
    assert len(ran.text) < 2_000


@pytest.mark.slow
@pytest.mark.parametrize("name", list(UNBOUNDED))
def test_it_is_stopped_and_nothing_gets_out(name, records, canary, database, listening):
    ran = run_hostile(records, UNBOUNDED[name], canary, database, listening)
    assert not ran.succeeded
    assert "took longer than" in ran.text or "too much memory" in ran.text


@pytest.mark.parametrize(
    "poison",
    [
        "LoadDB = FilterDB = GetValue = None\nanswer = 1",
        "def LoadDB(name): return 'mine'\nanswer = LoadDB('x')",
        "import math\nmath = 3\nanswer = math",
        "len = sorted = str = None\nanswer = 1",
        "global answer\nanswer = 1\nValueError = TypeError",
        "import collections\ncollections.Counter([1]).update([2])\nLoadDB('patients').columns.clear()\nanswer = 1",
    ],
)
def test_no_script_poisons_the_next_one(poison, records):
    assert records.run(poison).succeeded
    assert records.run(HONEST) == Ran(True, "sodium")
    assert records.run("answer = len(sorted(str(12)))") == Ran(True, "2")
    assert records.run("import math\nanswer = math.floor(math.pi)") == Ran(True, "3")
