"""The ledger's core is small, the contract calls every public method, and no method only passes on what it is given."""

from __future__ import annotations

import ast
from abc import ABC
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inside import parts_of_ledger

from cascade_memory.ledger import running, sqlite
from cascade_memory.ledger.core import Ledger
from cascade_memory.testing import LedgerContract, ledger_in_ram

MOST = 31  # of the core, the parts that it hands out included; may only go up by a part


def _members(kind: type) -> set[str]:
    """Return the public names of a class and of those that it extends."""
    kinds = [one for one in kind.__mro__ if one not in (object, ABC)]
    return {name for one in kinds for name in vars(one) if not name.startswith("_")}


PARTS = parts_of_ledger()
CORE = {*_members(Ledger), "path", "check"} - {"connections"}
METHODS = {*CORE, *(f"{part}.{name}" for part, kind in PARTS.items() for name in _members(kind))}


def test_the_core_is_small():
    assert len(PARTS) == 12
    assert len({*CORE, *PARTS}) <= MOST


class _Noted:
    """A ledger, or a part of one, that notes what is asked of it."""

    def __init__(self, inner: Any, place: str, noted: set[str]) -> None:
        self.inner, self.place, self.noted = inner, place, noted

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not self.place and name in PARTS:
            return _Noted(value, f"{name}.", self.noted)
        if not callable(value):
            self.noted.add(f"{self.place}{name}")
            return value

        def called(*arguments: Any, **options: Any) -> Any:
            self.noted.add(f"{self.place}{name}")
            return value(*arguments, **options)

        return called


@pytest.mark.slow
def test_the_contract_calls_every_public_method_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    noted = set[str]()

    class Contract(LedgerContract):
        TTL = 1_000.0

        def make(self) -> Any:
            return _Noted(ledger_in_ram(), "", noted)

        def wait(self, seconds: float) -> None:
            moment = running.clock() + seconds
            monkeypatch.setattr(running, "clock", lambda: moment)

    tests = [name for name in dir(Contract) if name.startswith("test_")]
    for name in tests:
        getattr(Contract(), name)()
    assert sorted(noted) == sorted(METHODS)


# -- no method only passes on ---------------------------------------------------------------------------------------------

CODE = {path.stem: ast.parse(path.read_text()) for path in sorted(Path(sqlite.__file__).parent.glob("*.py"))}


def _only_call(body: list[ast.stmt]) -> ast.Call | None:
    """Return the call that is all that is done, once a connection is open."""
    body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.With):
        return _only_call(body[0].body)
    done = body[0].value if len(body) == 1 and isinstance(body[0], (ast.Return, ast.Expr)) else None
    return done if isinstance(done, ast.Call) else None


def _passes_on(method: ast.FunctionDef, uses: Counter[str]) -> bool:
    """Say whether a method hands what it is given to something else, and does nothing.

    To open a connection is something, where others call the same function in transactions of their own, or where another
    object is to remember what it finds.
    """
    call = _only_call(method.body)
    given = {one.arg for one in [*method.args.args, *method.args.kwonlyargs]} - {"self"}
    if call is None or not given:
        return False
    values = [*call.args, *(one.value for one in call.keywords)]
    passed = {one.id for one in values if isinstance(one, ast.Name)}
    called = ast.unparse(call.func)
    opens = isinstance(method.body[-1], ast.With) and (uses[called] > 1 or called.startswith("self."))
    return called.replace(".", "").isidentifier() and len(passed) == len(values) and given <= passed and not opens


def _passing(code: dict[str, ast.Module]) -> list[str]:
    everything = [node for module in code.values() for node in ast.walk(module)]
    uses = Counter(ast.unparse(node.func) for node in everything if isinstance(node, ast.Call))
    return [
        f"{name}.{kind.name}.{method.name}"
        for name, module in code.items()
        for kind in ast.walk(module)
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and _passes_on(method, uses)
    ]


def test_no_method_only_passes_on_what_it_is_given():
    assert _passing(CODE) == []


def test_a_method_that_only_passes_on_is_found():
    code = """
class Facade:
    def plain(self, key):
        return self.inner.plain(key)
    def opened(self, key):
        "Say so."
        with self.connections.read() as connection:
            return rows.read(connection, key)
    def alone(self, key):
        with self.connections.read() as connection:
            return once(connection, key)
    def shared(self, key):
        with self.connections.read() as connection:
            return twice(connection, key)
    def works(self, key):
        return self.inner.works(key + 1)
twice(1, 2)
"""
    assert _passing({"a": ast.parse(code)}) == ["a.Facade.plain", "a.Facade.opened", "a.Facade.alone"]
