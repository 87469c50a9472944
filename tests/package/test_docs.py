"""Every code block of README and docs is run: Python is executed, commands are called, printed output is compared."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import json
import re
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import MissingExtra

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
OPTIONAL = ("langchain", "langchain_core", "langgraph", "llama_index", "langchain_mcp_adapters", "mcp")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    output: str | None  # of the ```text block that stands right behind


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(_FENCE.finditer(text))
    result = []
    for one, following in itertools.zip_longest(found, found[1:]):
        behind = following is not None and following[1] == "text" and not text[one.end() : following.start()].strip()
        output = following[2] if behind and following is not None else None
        result.append(Block(one[1], one[2], text[: one.start()].count("\n") + 1, output))
    return [block for block in result if block.language != "text"]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_block_does_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
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
    if "./my-reranker" in page.read_text() and importlib.util.find_spec("transformers") is not None:
        from tiny_models import make_reranker  # nor can one be downloaded

        make_reranker(tmp_path / "my-reranker")


def run_block(block: Block, place: str, names: dict[str, object]) -> None:
    if block.language == "python":
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
    else:
        pytest.fail(f"{place}: a block of language {block.language!r} is run by nothing")


def run_commands(code: str, place: str) -> None:
    """Call our own commands; of others, check what can be checked without installing or measuring for hours."""
    extras = metadata("cascade-memory").get_all("Provides-Extra") or []
    for line in code.splitlines():
        for command in line.split("&&"):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            if words[0] == "cascade-memory":
                assert main(words[1:]) == 0, f"{place}: {command}"
            elif words[:2] == ["pip", "install"]:
                for asked in re.findall(r"\[([\w,-]+)\]", command):
                    assert set(asked.split(",")) <= set(extras), f"{place}: {command}"
            elif words[0] == "python":
                script = PROJECT / words[1]
                assert script.is_file() or (script / "__main__.py").is_file(), f"{place}: {command}"
            else:
                assert words == ["pytest"] or words[0] in ("export", "mv", "rm"), f"{place}: who runs {command!r}?"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page: Path):
    for target in _LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_screen_of_readme_has_it_all():
    first = (PROJECT / "README.md").read_text().splitlines()[:40]
    assert any("pip install" in line for line in first)
    assert "```python" in first
    assert "```text" in first


def test_the_map_of_the_package_is_complete():
    page = (PROJECT / "docs" / "how-it-works.md").read_text()
    for package in (PROJECT / "cascade_memory").glob("*/__init__.py"):
        assert f"\n  {package.parent.name}/ " in page
