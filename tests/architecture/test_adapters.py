"""A framework stays in its adapter: the lists that say so name every adapter and every framework."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path
from typing import Any

import pytest
from frameworks import FRAMEWORK_OF

import cascade_memory

tomllib = pytest.importorskip("tomllib")

PACKAGE = Path(cascade_memory.__file__).parent
SETTINGS = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
_NOT_FRAMEWORKS = {"numpy", "pydantic", "typing_extensions", "anyio", "starlette", "uvicorn", "h11"}


@functools.cache
def _adapters() -> dict[str, set[str]]:
    """Return each package that derives from the adapters' base class, or serves, with the modules of its framework."""
    found: dict[str, set[str]] = {}
    for init in PACKAGE.glob("*/__init__.py"):
        texts = [path.read_text() for path in init.parent.rglob("*.py")]
        if init.parent.name != "mcp_server" and not any("Adapter" in text for text in texts):
            continue  # to parse them takes seconds
        trees = [ast.parse(text) for text in texts]
        bases = {ast.unparse(base) for tree in trees for node in ast.walk(tree) for base in getattr(node, "bases", [])}
        if init.parent.name == "mcp_server" or "Adapter" in bases:
            found[init.parent.name] = {root for tree in trees for root in _roots(tree)} - _NOT_FRAMEWORKS - {"cascade_memory"}
    return found


def _roots(tree: ast.AST) -> set[str]:
    roots: set[str] = set()
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        roots |= {name.split(".")[0] for name in names}
    return roots - set(sys.stdlib_module_names)


def _forbidden(contract: str) -> set[str]:
    contracts: list[dict[str, Any]] = SETTINGS["tool"]["importlinter"]["contracts"]
    return {module for one in contracts if one["name"] == contract for module in one["forbidden_modules"]}


def test_there_are_three_adapters():
    assert {"langchain", "llama_index", "mcp_server"} <= set(_adapters())


@pytest.mark.parametrize("contract", ["the core is framework-free", "stores know no models, encoders know no stores"])
def test_no_floor_below_may_import_a_framework(contract: str):
    assert {framework for its in _adapters().values() for framework in its} - _forbidden(contract) == set()


def test_tests_are_left_out_where_their_framework_is_not_installed():
    assert set(_adapters()) - set(FRAMEWORK_OF) == set()


def test_an_extra_of_its_own_installs_each_framework():
    extras: dict[str, list[str]] = SETTINGS["project"]["optional-dependencies"]
    for adapter in _adapters():
        assert adapter.removesuffix("_server").replace("_", "-") in extras
