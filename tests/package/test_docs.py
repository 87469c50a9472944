"""Every code block of README and docs is run and its output compared; every link leads somewhere."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import os
import re
import shlex
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
from pages import FENCE, PAGES, PROJECT, Block, blocks

import cascade_memory
from cascade_memory.cli import main
from cascade_memory.cli.main import parser
from cascade_memory.errors import MissingExtra

OPTIONAL = (
    *("fastapi", "langchain", "langchain_core", "langgraph", "llama_index", "langchain_mcp_adapters"),
    *("mcp", "starlette", "jinja2", "presidio_analyzer", "deepagents", "opentelemetry"),
)
SLOW = {"README.md", *(f"docs/{name}.md" for name in ("command-line", "cross-encoder", "llama-index", "measuring", "own-task"))}
SLOW |= {"docs/production.md", "docs/tutorial.md", *(f"docs/how-to/{name}.md" for name in ("measure", "plot", "serve"))}
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def same(printed: str, claimed: str) -> bool:
    """Equal but for the last digit of a number, where other processors may round differently."""
    words, others = printed.split(), claimed.split()
    return len(words) == len(others) and all(
        word == other or _close(word, other) for word, other in zip(words, others, strict=True)
    )


def _close(word: str, other: str) -> bool:
    try:
        return "." in word and abs(float(word) - float(other)) <= 0.0021
    except ValueError:
        return False


def _named(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if _named(page) in SLOW else []) for page in PAGES], ids=_named
)
def test_every_block_does_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)  # the command of this environment
    put_stand_ins(page, tmp_path, monkeypatch)
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        printed = io.StringIO()
        place = f"{page.name}:{block.line}"
        with contextlib.redirect_stdout(printed):
            run_block(block, place, names)
        if block.output is not None:
            assert same(printed.getvalue(), block.output), f"{place} prints\n{printed.getvalue()}"


def put_stand_ins(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("langchain") is not None:
        from docs_model import multiplier  # no real model can be asked here: a scripted one answers

        monkeypatch.setattr("langchain.chat_models.init_chat_model", multiplier)
    if importlib.util.find_spec("llama_index") is not None:
        import docs_llm

        monkeypatch.setitem(sys.modules, "llama_index.llms.openai", docs_llm)
    if "./my-reranker" in page.read_text():
        (tmp_path / "my-reranker").mkdir()
        if importlib.util.find_spec("transformers") is not None:
            from tiny_models import make_reranker  # nor can one be downloaded

            make_reranker(tmp_path / "my-reranker")


def run_block(block: Block, place: str, names: dict[str, object]) -> None:
    if block.language == "python":
        if "from mcp import Client," in block.code and not _has_mcp_2():
            pytest.skip("needs version 2 of the MCP SDK")
        try:
            exec(compile(block.code, place, "exec"), names)
        except MissingExtra as error:
            pytest.skip(str(error))
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] not in OPTIONAL:
                raise
            pytest.skip(str(error))
    elif block.language == "bash":
        run_commands(block.code, place)
    elif block.language == "json":
        json.loads(block.code)
    elif block.language == "html":
        pytest.importorskip("jinja2").Environment(autoescape=True).parse(block.code)
    else:
        pytest.fail(f"{place}: a block of language {block.language!r} is run by nothing")


def _has_mcp_2() -> bool:
    return importlib.util.find_spec("mcp") is not None and importlib.util.find_spec("mcp.client.client") is not None


def run_commands(code: str, place: str) -> None:
    """Call our own commands; of others, check what can be checked without installing or measuring for hours."""
    extras = metadata("cascade-memory").get_all("Provides-Extra") or []
    for line in code.splitlines():
        for command in line.split("&&"):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            if words[0] == "cascade-memory" and "--base-url" in words:
                parser().parse_args(words[1:])  # no server of a model is there: only the options are checked
            elif words[0] == "cascade-memory":
                assert main(words[1:]) == 0, f"{place}: {command}"
            elif words[:2] == ["pip", "install"]:
                for asked in re.findall(r"\[([\w,-]+)\]", command):
                    assert set(asked.split(",")) <= set(extras), f"{place}: {command}"
            elif words[0] == "python":
                script = PROJECT / words[1]
                assert script.is_file() or (script / "__main__.py").is_file(), f"{place}: {command}"
            elif words[0] == "pytest":
                assert {word for word in words if word.startswith("-")} <= {"--speed"}, f"{place}: {command}"
                assert all((PROJECT / word).is_file() for word in words if word.endswith(".py")), f"{place}: {command}"
            else:
                assert words[0] in ("export", "mv", "rm"), f"{place}: who runs {command!r}?"


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_link_leads_somewhere(page: Path):
    for target, heading in _LINK.findall(page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not heading or heading in headings(there), f"{page.name} links to {target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the headings of a page as links name them."""
    found = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_page_installs_from_a_checkout_as_long_as_there_is_no_release():
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    commands = [line for page in pages for line in page.read_text().splitlines() if line.startswith("pip install")]
    assert len(commands) > 10
    assert [line for line in commands if line.startswith('pip install "cascade-memory')] == []


def test_the_first_screen_of_readme_has_it_all():
    first = (PROJECT / "README.md").read_text().splitlines()[:40]
    assert any("pip install" in line for line in first)
    assert "```python" in first
    assert "```text" in first


def test_the_first_screen_of_the_measurements_says_what_its_tables_say():
    _, first, rest = (PROJECT / "docs" / "benchmarks.md").read_text().split("\n## ", 2)
    figures = re.findall(r"\d[\d.]* ± \d[\d.]*|\d+\.\d+", first)
    assert len(figures) > 30
    assert [figure for figure in figures if figure not in rest] == []


def test_the_map_of_the_package_is_complete():
    page = (PROJECT / "docs" / "how-it-works.md").read_text()
    for package in Path(cascade_memory.__file__).parent.glob("*/__init__.py"):
        assert f"\n  {package.parent.name}/ " in page


def imports_of(page: Path) -> set[tuple[str, str]]:
    """What the Python blocks of a page import of ours: (module, name)."""
    trees = [ast.parse(block.code, type_comments=False) for block in blocks(page) if block.language == "python"]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").split(".")[0] == "cascade_memory"]
    return {(str(node.module), alias.name) for node in ours for alias in node.names}


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_what_pages_teach_is_importable_from_where_a_user_would_look(page: Path):
    for module, name in imports_of(page):
        deep = 1 + module.startswith("cascade_memory.capabilities.")  # each of which is a room
        assert module.count(".") <= deep, f"{page.name} imports {name} from {module}: export it one level down"
        try:
            exported = importlib.import_module(module).__all__
        except MissingExtra:
            continue
        except AttributeError:
            assert module == "cascade_memory.errors", f"{module} does not say what it exports"
            continue
        assert name in exported or importlib.util.find_spec(f"{module}.{name}") is not None, f"{module} does not export {name}"
