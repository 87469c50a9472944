"""The benchmark, the contract tests and the inspector take public names only: what a room offers, and no file inside it."""

from __future__ import annotations

import ast
import functools
import importlib
from pathlib import Path

import pytest

from cascade_memory.errors import MissingExtra

PACKAGE = Path(__file__).parents[2] / "cascade_memory"
CAPABILITIES = "cascade_memory.capabilities."  # each folder there is a room
SATELLITES = ("evaluation", "inspector", "testing")
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


@functools.cache
def imports(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the names that a file imports from this package, with the module that each comes from."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cascade_memory"):
            found += [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.startswith("cascade_memory")]
    return tuple(found)


def taken_from(room: str) -> set[str]:
    """Return the names that the satellites import from a room."""
    files = [path for satellite in SATELLITES for path in (PACKAGE / satellite).rglob("*.py")]
    return {name for path in files for home, name in imports(path) if home == f"cascade_memory.{room}"}


@pytest.mark.parametrize("satellite", SATELLITES)
def test_a_satellite_takes_nothing_from_inside_another_room(satellite: str):
    found = [
        f"{path.relative_to(PACKAGE)}: {module}.{name}"
        for path in sorted((PACKAGE / satellite).rglob("*.py"))
        for module, name in imports(path)
        if module.count(".") > 1 + module.startswith(CAPABILITIES) and module.split(".")[1] != satellite
    ]
    assert found == []


@pytest.mark.parametrize("room", [room for room in ROOMS if "door(" in (PACKAGE / room / "__init__.py").read_text()])
def test_a_room_offers_what_type_checkers_see_there_and_nothing_that_nobody_takes(room: str):
    module = importlib.import_module(f"cascade_memory.{room}")
    written = {name for home, name in imports(PACKAGE / room / "__init__.py") if home.count(".") > 1}
    offered = {name for name in dir(module) if not name.startswith("_")} - {"TYPE_CHECKING", "annotations", "door"}
    files = {path.stem for path in (PACKAGE / room).iterdir()}
    assert written <= offered
    assert offered - written <= files  # a file that was imported is an attribute as well
    try:
        assert all(getattr(module, name) is not None for name in written)
    except MissingExtra as error:
        pytest.skip(str(error))
    for_users = set(getattr(module, "__all__", ()))
    assert written - taken_from(room) - for_users == set()


def test_a_name_that_a_room_does_not_offer_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Bogus'"):
        importlib.import_module("cascade_memory.looks").Bogus  # noqa: B018
