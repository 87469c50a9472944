"""What is acquired is let go of, wherever an interrupt comes: it is acquired inside the ``try`` that lets go of it.

Between ``lock.acquire()`` and a ``try`` below it, Python may raise an interrupt. So may it at the first step of an ``__exit__``
that is written in Python; see ``cascade_memory/domain/interruptible.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cascade_memory

ROOT = Path(cascade_memory.__file__).parent
FILES = {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(ROOT.rglob("*.py"))}
OURS = {name: text for name, text in FILES.items() if not name.startswith(("evaluation/", "testing/", "looks/"))}


def _trees(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the files in which one of these words stands; the others need not be parsed, which takes seconds."""
    return ((name, ast.parse(text)) for name, text in OURS.items() if any(word in text for word in words))


_ACQUIRES = {"acquire", "try_acquire", "mkdtemp", "mkstemp"}
_CALLED_BY_NAME = {"take", "os.open"}
_BEGINS = ("BEGIN", "SAVEPOINT")
_WRITTEN_IN_PYTHON = {"contextmanager", "asynccontextmanager", "Condition", "Event", "Semaphore", "BoundedSemaphore"}

# How many of them may stand where they stand, and why.
MAY_ACQUIRE = {
    "domain/private_files.py": (3, "files that are read or written, and locked by nobody"),
    "stores/folder_files.py": (1, "the same"),
    "memory/backup.py": (1, "the same"),
    "engine/workers.py": (2, "a new lock that nobody else knows, and the end of a job: there is nothing to let go of"),
    "engine/mirror_feeder.py": (1, "the owner's lock is kept, and asking for it again says that it is held"),
    "engine/namespace_state.py": (1, "the same"),
    "learning/learner.py": (1, "the same"),
    "assembly/cascade.py": (1, "a handle that is gone counts no more"),
    "ledger/connections.py": (1, "a part of such a try"),
    "ledger/postgres/turns.py": (2, "a new lock that nobody else knows, and a block that gives the turn back"),
    "ledger/forking.py": (1, "what follows a fork releases it, however far this came"),
    "ledger/archive.py": (1, "whoever opened the connection closes it, and so rolls back"),
    "ledger/restoring.py": (1, "an interrupt rolls back the whole transaction"),
    "snapshots/stored_rows.py": (1, "an empty folder for temporary files"),
}
MAY_USE = {
    "capabilities/scores/asking.py": "an interrupt leaves a timer, which closes a connection that nobody uses any more",
    "cli/standard_error.py": "a command of its own process",
    "inspector/running.py": "only waits; nobody sets them",
    "ledger/explained.py": "holds nothing",
    "memory/transfer.py": "holds nothing",
    "runs/around.py": "an ExitStack enters it, which knows no others",
}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_acquisition(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if _name(node.func) in _ACQUIRES or ast.unparse(node.func) in _CALLED_BY_NAME:
        return True
    texts = [text.value for text in ast.walk(node.args[0]) if isinstance(text, ast.Constant)] if node.args else []
    return _name(node.func) == "execute" and any(str(text).startswith(_BEGINS) for text in texts)


def _lets_go(node: ast.AST) -> bool:
    """Say whether what a statement holds in its body is let go of on every way out of it."""
    if isinstance(node, ast.Try):
        return bool(node.finalbody) or any(
            one.type is None or "BaseException" in ast.unparse(one.type) for one in node.handlers
        )
    # A connection ends its transaction when it is closed. ``contextlib.closing`` is written in Python.
    return isinstance(node, ast.With) and any("connected(" in ast.unparse(one.context_expr) for one in node.items)


def _unsafe(tree: ast.AST, *, held: bool = False) -> Iterator[int]:
    """Yield the line of each acquisition that nothing around it lets go of."""
    if _is_acquisition(tree) and not held:
        yield tree.lineno  # type: ignore[attr-defined]
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        held = False
    for child in ast.iter_child_nodes(tree):
        inside = _lets_go(tree) and child in getattr(tree, "body", ())
        # ``with lock:`` and ``os.close(os.open(...))`` are one step, or hold what they acquire at once.
        closed_at_once = isinstance(child, ast.Call) and ast.unparse(child.func) in ("os.close", "os.dup2")
        yield from _unsafe(child, held=held or inside or closed_at_once)


@pytest.mark.slow
def test_what_is_acquired_is_acquired_inside_the_try_that_lets_go_of_it():
    found = {name: lines for name, tree in _trees(*_ACQUIRES, *_CALLED_BY_NAME, *_BEGINS) if (lines := list(_unsafe(tree)))}
    wrong = {name: lines for name, lines in found.items() if len(lines) != MAY_ACQUIRE.get(name, (0, ""))[0]}
    assert wrong == {}
    assert MAY_ACQUIRE.keys() == found.keys(), "take these out of the table"


@pytest.mark.slow
def test_nothing_that_holds_something_is_written_in_python():
    found = {
        name
        for name, tree in _trees(*_WRITTEN_IN_PYTHON)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and _name(node) in _WRITTEN_IN_PYTHON
    }
    assert found - MAY_USE.keys() == set(), "use interruptible, Flag, or locks in ``with``"
    assert MAY_USE.keys() <= found, "take these out of the table"


def _blocks() -> set[str]:
    """Return the names of our blocks; without those that name something else in another file."""
    functions = [node for _, tree in _trees("interruptible") for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    made = {one.name for one in functions if any(_name(by) == "interruptible" for by in one.decorator_list)}
    return (made | {"block_of", "closed_surely"}) - {"read", "write", "_opened", "_written", "_ending"}


def _kept_in_variables(tree: ast.AST, blocks: set[str]) -> list[int]:
    """Return the lines that give a block a name, which a frame, and so a traceback, would keep."""
    names = (ast.Assign, ast.AnnAssign, ast.NamedExpr)
    bound = [node.value for node in ast.walk(tree) if isinstance(node, names)]
    choices = [part for value in bound for part in ((value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,))]
    return [part.lineno for part in choices if isinstance(part, ast.Call) and _name(part.func) in blocks]


@pytest.mark.slow
def test_no_variable_holds_a_block():
    blocks = _blocks()
    assert {"patience", "asked_by", "calculating"} <= blocks
    assert {name: lines for name, tree in _trees(*blocks) if (lines := _kept_in_variables(tree, blocks))} == {}
    planted = "waits = patience(1.0)\nwaits = nullcontext() if found is None else asked_by(found)\nwith patience(1.0):\n    1"
    assert _kept_in_variables(ast.parse(planted), blocks) == [1, 2]


@pytest.mark.parametrize(
    ("planted", "unsafe"),
    [
        ("lock.acquire()\ntry:\n    work()\nfinally:\n    lock.release()", True),
        ("if not lock.acquire(timeout=1):\n    raise StoreBusy\ntry:\n    work()\nfinally:\n    lock.release()", True),
        ("try:\n    lock.acquire()\nexcept ValueError:\n    pass", True),
        ("try:\n    work()\nfinally:\n    lock.acquire()", True),
        ("connection.execute('BEGIN IMMEDIATE')\ntry:\n    work()\nexcept BaseException:\n    connection.rollback()", True),
        ("connection.execute('BEGIN' if ready else 'BEGIN IMMEDIATE')", True),
        ("handle = os.open(path, 0)\ntry:\n    work()\nfinally:\n    os.close(handle)", True),
        ("try:\n    def later():\n        lock.acquire()\nfinally:\n    lock.release()", True),
        ("try:\n    take(lock, held)\n    work()\nfinally:\n    if True in held:\n        lock.release()", False),
        ("try:\n    connection.execute('BEGIN')\nexcept BaseException:\n    connection.rollback()", False),
        ("with connected(path) as connection:\n    connection.execute('BEGIN EXCLUSIVE')", False),
        ("with closing(connect(path)) as connection:\n    connection.execute('BEGIN EXCLUSIVE')", True),
        ("with lock:\n    work()", False),
        ("os.close(os.open(path, flags))", False),
        ("connection.execute('SELECT 1')", False),
    ],
)
def test_the_rule_finds_what_is_planted(planted: str, unsafe: bool):
    body = "\n".join(f"    {line}" for line in planted.splitlines())
    assert bool(list(_unsafe(ast.parse(f"def work():\n{body}")))) is unsafe
