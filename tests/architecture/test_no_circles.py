"""No file needs another one that needs it, not even for the names of its types: each can be read after what it imports."""

from __future__ import annotations

import graphlib

import pytest

grimp = pytest.importorskip("grimp")

CAPABILITIES = "cascade_memory.capabilities"


def test_no_file_imports_another_that_imports_it():
    graph = grimp.build_graph("cascade_memory")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    imports[CAPABILITIES] = {one for one in imports[CAPABILITIES] if not one.startswith(CAPABILITIES)}  # it tells type checkers
    assert len(imports) > 200
    assert sum(map(len, imports.values())) > 1_000
    list(graphlib.TopologicalSorter(imports).static_order())  # raises CycleError, which names the circle


def test_a_circle_would_be_found():
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).static_order())
