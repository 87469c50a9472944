"""The package as a package: what it exports, what it costs to import, what it promises."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from frameworks import FRAMEWORK_OF

import cascade_memory
from cascade_memory.errors import MissingExtra
from cascade_memory.lazy import load

ROOT = Path(cascade_memory.__file__).parent
PROJECT = ROOT.parent
_HEAVY = (
    "torch",
    "transformers",
    "chromadb",
    "langchain_core",
    "llama_index",
    "mcp",
    "matplotlib",
    "sentence_transformers",
    "tokenizers",
    "safetensors",
)


def test_every_exported_name_is_there_and_listed():
    assert sorted(cascade_memory.__all__) == cascade_memory.__all__
    for name in cascade_memory.__all__:
        assert getattr(cascade_memory, name).__module__.startswith("cascade_memory.")
        assert name in dir(cascade_memory)
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        cascade_memory.Nobody  # noqa: B018


def _loaded(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_importing_and_using_a_memory_in_ram_loads_nothing_heavy():
    assert not _loaded("import cascade_memory") & {*_HEAVY, "numpy"}
    use = "from cascade_memory import CascadeMemory; m = CascadeMemory(embedder='hashing'); m.recall('q'); m.close()"
    assert not _loaded(use) & set(_HEAVY)


_LATER = (
    "redaction.assignments",
    "redaction.fields",
    "looks.card",
    "insight.report",
    "capabilities.review.verbs",
    "bandit.rivals",
)
_USE_ALL = (
    "m.report(); next(m.review.audit(), None); m._repr_html_(); from cascade_memory import rankers; import asyncio, numpy.ma"
)
_MODULES = 226


def test_a_recall_loads_nothing_that_it_does_not_need():
    use = "from cascade_memory import CascadeMemory; m = CascadeMemory(embedder='hashing'); m.add('a', 'b'); m.recall('a c')"
    slow = {"asyncio", "numpy.ma"}  # 15 and 5 ms of a first recall of 600
    slow |= {f"cascade_memory.{name}" for name in _LATER}  # 90 ms
    assert not _loaded(use) & slow - _loaded("import numpy")  # numpy 1 loads numpy.ma itself
    assert slow <= _loaded(f"{use}; m.add('password: Tr0ub4dor', 'x', metadata={{'a': 'b'}}); {_USE_ALL}")


def test_a_recall_needs_no_more_modules_than_it_did():
    use = "from cascade_memory import CascadeMemory; m = CascadeMemory(embedder='hashing'); m.add('a', 'b'); m.recall('a c')"
    assert len([name for name in _loaded(use) if name.startswith("cascade_memory")]) <= _MODULES


def test_importing_costs_no_more_than_numpy_and_a_half():
    def seconds(module: str) -> float:
        script = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        runs = [
            float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
            for _ in range(5)
        ]
        return sorted(runs)[2]

    assert seconds("cascade_memory") <= 1.5 * seconds("numpy")


_LONGER = {"memory.py": 560}  # the class that users see; most of it says what each verb does


def test_no_file_is_longer_than_a_reader_s_patience():
    longest = {path: path.read_text().count("\n") for path in [*ROOT.rglob("*.py"), *(PROJECT / "examples").rglob("*.py")]}
    assert {str(path): lines for path, lines in longest.items() if lines > _LONGER.get(path.name, 400)} == {}


@pytest.mark.slow
def test_every_public_name_has_a_docstring():
    assert [f"{path.relative_to(ROOT)}:{name}" for path in ROOT.rglob("*.py") for name in _undocumented(path)] == []


def _undocumented(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    if ast.get_docstring(tree) is None and not path.stem.startswith("_"):
        yield path.stem
    inside: list[ast.AST] = [tree]
    while inside:
        for node in ast.iter_child_nodes(inside.pop()):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inside.append(node)  # a definition may stand under an ``if`` or a ``try``
            elif not node.name.startswith("_"):
                overload = any("overload" in ast.unparse(one) for one in node.decorator_list)
                if not overload and ast.get_docstring(node) is None:
                    yield node.name
                if isinstance(node, ast.ClassDef):  # what stands in a function is the function's own
                    inside.append(node)


# The clients of our own: each asks the server that the user named, and nobody else.
CALLS = {
    ROOT / "capabilities" / "scores" / "asking.py": {"httpx", "socket"},  # it closes a connection that takes too long
    ROOT / "evaluation" / "model" / "openai_compatible.py": {"httpx"},
    ROOT / "stores" / "bounded_http.py": {"httpx", "socket"},
    ROOT / "inspector" / "running.py": {"socket"},  # it listens
    ROOT / "cli" / "serve.py": {"socket"},  # it sees whether it could listen
}


@pytest.mark.slow
def test_nothing_is_pickled_and_nobody_is_phoned():
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        tree = ast.parse(text)
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name == "urllib.parse":
                    continue  # takes an address apart, and calls nobody
                top = name.split(".")[0]
                allowed = CALLS.get(path, set())
                assert top in allowed or top not in {"pickle", "dill", "requests", "httpx", "urllib", "posthog", "socket"}, path
        assert "allow_pickle=True" not in text


def test_extras_that_errors_name_exist():
    toml = (PROJECT / "pyproject.toml").read_text()
    for path in ROOT.rglob("*.py"):
        for part in path.read_text().split("cascade-memory[")[1:]:
            extra = part.split("]")[0]
            assert f"\n{extra} = [" in toml, f"{path} names the extra {extra!r}"


def test_it_is_typed():
    assert (ROOT / "py.typed").exists()


def test_every_module_imports_by_itself():
    frameworks = {*FRAMEWORK_OF.values(), "starlette", "markupsafe", "jinja2", "langgraph"}
    missing = {framework for framework in frameworks if importlib.util.find_spec(framework) is None}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            try:
                importlib.import_module(name)
            except (ModuleNotFoundError, MissingExtra) as error:
                cause = error.__cause__ if isinstance(error, MissingExtra) else error
                if not str(getattr(cause, "name", "")).startswith(tuple(missing)):  # as "llama_index_instrumentation" does
                    raise


def test_only_a_missing_optional_package_names_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "of_extras"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "heavy.py").write_text("import not_installed_anywhere.inside")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError) as plain:
        load("of_extras", "Heavy", {"Heavy": "heavy"}, optional={"torch"}, remedy="install torch")
    assert not isinstance(plain.value, MissingExtra)
    with pytest.raises(MissingExtra, match="Heavy needs the package not_installed_anywhere, install it"):
        load("of_extras", "Heavy", {"Heavy": "heavy"}, optional={"not_installed_anywhere"}, remedy="install it")
