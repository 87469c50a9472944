"""Tests look at what a memory does, not at how: the few places where they reach for what is private are counted."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MOST = 21
_LISTS = ("test_private.py", "test_acquired_in_try.py")  # which name functions of the package, and call none
_PUBLIC = {"_exit", "_fields", "_replace", "_asdict", "_repr_html_", "_repr_png_"}  # os, named tuples, IPython's protocol
_NAME = re.compile(r"(?:\w+\.)*(_[A-Za-z]\w*)")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _PUBLIC


def _is_own(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _named(node: ast.AST) -> Iterator[str]:
    """Yield the private names of others that a piece of code reaches for, as attributes, by import or as strings."""
    if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _is_own(node.value):
        yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (one.name for one in node.names if _is_private(one.name))
    elif isinstance(node, ast.Call):  # setattr, getattr, patch.object and whatever is made of them
        given = [one.value for one in [*node.args, *(key.value for key in node.keywords)] if isinstance(one, ast.Constant)]
        found = (_NAME.fullmatch(one) for one in given if isinstance(one, str))
        yield from (one[1] for one in found if one and _is_private(one[1]))
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):  # the owner and the name of what is replaced
        strings = [one.value for one in node.elts[1:] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        yield from (one for one in strings if _NAME.fullmatch(one) and _is_private(one))


def _program(node: ast.AST) -> ast.Module | None:
    """Return a program that stands in a string: it is run in another process."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "\n" not in node.value:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most strings are no programs
            return ast.parse(textwrap.dedent(node.value))
    except (SyntaxError, ValueError):
        return None


def reached_for(code: str) -> list[tuple[int, str]]:
    """Return the line and the name of whatever private thing of others a program reaches for."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(code)):
        found += [(node.lineno, name) for name in _named(node)]
        inner = _program(node)
        if inner is not None:
            found += [(node.lineno, name) for one in ast.walk(inner) for name in _named(one)]
    return sorted(found)


@pytest.mark.slow
def test_what_is_private_is_left_alone():
    places = [
        f"{file.relative_to(TESTS)}:{line}: {name}"
        for file in sorted(TESTS.rglob("*.py"))
        if file.name not in _LISTS
        for line, name in reached_for(file.read_text())
    ]
    assert len(places) <= MOST, "\n".join(places)


def test_every_way_of_reaching_counts():
    code = """
from module import _hidden, shown
memory._engine._states
self._own, cls._own, super()._own, memory.__dict__, os._exit, row._replace, memory._repr_html_
monkeypatch.setattr(memory, "_engine", None)
monkeypatch.setattr("module._CONSTANT", 1)
getattr(memory, name="_engine")
for owner, name in ((policy, "_lock"), (policy, "lock")): ...
script = '''
    memory._engine
'''
said("a sentence", "_", "a_name", "__name__")
"""
    assert [name for _, name in reached_for(code)] == [
        "_hidden", "_engine", "_states", "_engine", "_CONSTANT", "_engine", "_lock", "_engine"
    ]  # fmt: skip
